// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Text of others without what a terminal would obey; lines and tabs stay. */
export function printable(text: string): string {
  return text.replace(CONTROLS, '\ufffd');
}

/** The same JSON: it may hold DEL and C1 as they are, and terminals obey C1. */
export function printableJson(json: string): string {
  return json.replace(/[\u007f-\u009f]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
