const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = [0x22, 0x5c, 0x2c, 0x5b, 0x7b];
const IS_EMPTY = /[ \t\r\n]*[\]}]/y;

/** More than any request needs. What a body costs depends on its values more than on its bytes. */
export const MAX_VALUES = 10_000;

/**
 * Whether a JSON text holds more than `mostValues` values, nested ones included. It costs a look at each character, so it
 * is asked before the text is parsed; a text that is no JSON gets any answer.
 */
export function hasMoreValues(text: string, mostValues: number): boolean {
  let values = 1;
  let isInText = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (isInText) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) isInText = false;
    } else if (code === QUOTE) isInText = true;
    else if (code === COMMA || ((code === BRACKET || code === BRACE) && hasFirst(text, at + 1))) {
      values += 1;
      if (values > mostValues) return true;
    }
  }
  return false;
}

function hasFirst(text: string, at: number): boolean {
  IS_EMPTY.lastIndex = at;
  return !IS_EMPTY.test(text);
}
