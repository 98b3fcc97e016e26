/** What a text may take up in a page, as bytes of HTML: a page stays small whatever was sent or received. */
const MAX_HTML_BYTES = 20_000;
// Control characters that a page cannot show; line breaks and tabs stay.
const UNSHOWN = /(?![\n\r\t])\p{Cc}/gu;

const ESCAPED_BYTES: Readonly<Record<string, number>> = { '&': 5, '<': 4, '>': 4, '"': 6, "'": 5 };

/** Bytes as text for a page: what is no UTF-8 or no character becomes U+FFFD, and what is too long is cut. */
export function shownBytes(bytes: Uint8Array, maxHtmlBytes = MAX_HTML_BYTES): string {
  // What is beyond is not even decoded.
  const text = Buffer.from(bytes.subarray(0, maxHtmlBytes)).toString('utf8');
  const isCutAlready = bytes.length > maxHtmlBytes;
  return shownText(text, { maxHtmlBytes, isCutAlready, sizeBytes: bytes.length });
}

/** A text for a page, cut as `shownBytes` does. */
export function shownText(
  text: string,
  { maxHtmlBytes = MAX_HTML_BYTES, isCutAlready = false, sizeBytes = Buffer.byteLength(text) } = {},
): string {
  const clean = text.replace(UNSHOWN, '\ufffd');
  const fitting = charsWithin(clean, maxHtmlBytes);
  if (fitting === clean.length && !isCutAlready) return clean.toWellFormed();
  return `${clean.slice(0, fitting).toWellFormed()}\n… (${sizeBytes.toLocaleString('en-US')} bytes in all)`;
}

/** How many characters at the beginning fit once they are escaped. */
function charsWithin(text: string, maxBytes: number): number {
  let bytes = 0;
  for (let at = 0; at < text.length; at += 1) {
    bytes += ESCAPED_BYTES[text.charAt(at)] ?? (text.charCodeAt(at) < 0x80 ? 1 : 3);
    if (bytes > maxBytes) return at;
  }
  return text.length;
}

const MAX_INDENT = 12;

const TOKEN = /"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs;

/**
 * JSON with line breaks, every value spelled as it was: going through JSON.parse would round large numbers. What is
 * no JSON comes back with odd line breaks, and never throws. Takes time in proportion to the text.
 */
export function prettyJson(text: string): string {
  const pieces: string[] = [];
  let depth = 0;
  let before = '';
  for (const [token] of text.matchAll(TOKEN)) {
    const isOpened = before === '{' || before === '[';
    const closes = token === '}' || token === ']';
    if (closes) depth = Math.max(0, depth - 1);
    const breaks = closes ? !isOpened : isOpened || before === ',';
    if (breaks) pieces.push(`\n${'  '.repeat(Math.min(depth, MAX_INDENT))}`);
    if (token === '{' || token === '[') depth += 1;
    pieces.push(token === ':' ? ': ' : token);
    before = token;
  }
  return pieces.join('');
}
