/** Deepest nesting that is passed on: common parsers at the receiving end (System.Text.Json) stop at 64. */
export const MAX_JSON_DEPTH = 64;

/** Cells of one value on the tape: kind and flags, start, end (exclusive), index of the entry after its subtree. */
export const CELLS_PER_VALUE = 4;
export const KIND_MASK = 7;
export const ESCAPED_FLAG = 8;
export const TOO_DEEP_FLAG = 16;

/** Names of the kinds, in the order of their codes on the tape. */
export const JSON_KINDS = ['null', 'true', 'false', 'number', 'string', 'array', 'object'] as const;
const [NULL, TRUE, FALSE, NUMBER, STRING, ARRAY, OBJECT] = [0, 1, 2, 3, 4, 5, 6];

/** The text is not JSON (RFC 8259); `offset` is the index of the offending UTF-16 code unit. */
export class JsonSyntaxError extends Error {
  readonly offset: number;

  constructor(problem: string, offset: number) {
    super(`${problem} at offset ${offset}`);
    this.name = 'JsonSyntaxError';
    this.offset = offset;
  }
}

type Scan = { readonly text: string; at: number; cells: Int32Array; used: number };

function skipSpace(scan: Scan): number {
  for (;;) {
    const code = scan.text.charCodeAt(scan.at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code;
    scan.at++;
  }
}

function append(scan: Scan, kind: number, start: number): number {
  if (scan.used === scan.cells.length) {
    const grown = new Int32Array(scan.cells.length * 2);
    grown.set(scan.cells);
    scan.cells = grown;
  }
  const cell = scan.used;
  scan.used += CELLS_PER_VALUE;
  scan.cells[cell] = kind;
  scan.cells[cell + 1] = start;
  scan.cells[cell + 2] = scan.at;
  scan.cells[cell + 3] = scan.used;
  return cell;
}

function isHex(text: string, start: number): boolean {
  for (let at = start; at < start + 4; at++) {
    const code = text.charCodeAt(at);
    const isDigit = code >= 0x30 && code <= 0x39;
    const lower = code | 0x20;
    if (!isDigit && !(lower >= 0x61 && lower <= 0x66)) return false;
  }
  return true;
}

function scanEscape(scan: Scan): void {
  const letter = scan.text[scan.at + 1];
  if (letter === 'u' && isHex(scan.text, scan.at + 2)) {
    scan.at += 6;
  } else if (letter !== undefined && '"\\/bfnrt'.includes(letter)) {
    scan.at += 2;
  } else {
    throw new JsonSyntaxError('Invalid escape in a string', scan.at);
  }
}

function scanString(scan: Scan): void {
  const start = scan.at;
  let flags = STRING;
  scan.at++;
  for (;;) {
    const code = scan.text.charCodeAt(scan.at);
    if (code === 0x22) break;
    if (code === 0x5c) {
      flags = STRING | ESCAPED_FLAG;
      scanEscape(scan);
    } else if (code >= 0x20) {
      scan.at++;
    } else {
      // Past the end charCodeAt is NaN, which fails the comparison above as well.
      throw new JsonSyntaxError('Control character in a string, or no closing quote', scan.at);
    }
  }
  scan.at++;
  append(scan, flags, start);
}

function scanDigits(scan: Scan): void {
  const start = scan.at;
  for (;;) {
    const code = scan.text.charCodeAt(scan.at);
    if (!(code >= 0x30 && code <= 0x39)) break;
    scan.at++;
  }
  if (scan.at === start) throw new JsonSyntaxError('Digit expected', start);
}

function scanNumber(scan: Scan): void {
  const { text } = scan;
  const start = scan.at;
  if (text.charCodeAt(scan.at) === 0x2d) scan.at++;
  if (text.charCodeAt(scan.at) === 0x30) scan.at++;
  else scanDigits(scan);
  if (text.charCodeAt(scan.at) === 0x2e) {
    scan.at++;
    scanDigits(scan);
  }
  if ((text.charCodeAt(scan.at) | 0x20) === 0x65) {
    scan.at++;
    const sign = text.charCodeAt(scan.at);
    if (sign === 0x2b || sign === 0x2d) scan.at++;
    scanDigits(scan);
  }
  append(scan, NUMBER, start);
}

function scanWord(scan: Scan, word: string, kind: number): void {
  const start = scan.at;
  if (!scan.text.startsWith(word, start)) throw new JsonSyntaxError('Unexpected character', start);
  scan.at += word.length;
  append(scan, kind, start);
}

function scanKey(scan: Scan): void {
  if (skipSpace(scan) !== 0x22) throw new JsonSyntaxError('Member name expected', scan.at);
  scanString(scan);
  if (skipSpace(scan) !== 0x3a) throw new JsonSyntaxError('Colon expected', scan.at);
  scan.at++;
}

function openContainer(scan: Scan, open: number[], kind: number): void {
  const cell = append(scan, kind, scan.at);
  if (open.length >= MAX_JSON_DEPTH) scan.cells[cell] = kind | TOO_DEEP_FLAG;
  open.push(cell);
  scan.at++;
  if (skipSpace(scan) === closerOf(kind)) closeContainer(scan, open, cell);
  else if (kind === OBJECT) scanKey(scan);
}

function closerOf(kind: number): number {
  return kind === OBJECT ? 0x7d : 0x5d;
}

function closeContainer(scan: Scan, open: number[], cell: number): void {
  const { cells } = scan;
  scan.at++;
  cells[cell + 2] = scan.at;
  cells[cell + 3] = scan.used;
  open.pop();
  const parent = open.at(-1);
  if (parent !== undefined) cells[parent] = (cells[parent] ?? 0) | ((cells[cell] ?? 0) & TOO_DEEP_FLAG);
}

function scanValue(scan: Scan, open: number[]): void {
  const code = skipSpace(scan);
  if (code === 0x22) scanString(scan);
  else if (code === 0x7b) openContainer(scan, open, OBJECT);
  else if (code === 0x5b) openContainer(scan, open, ARRAY);
  else if (code === 0x74) scanWord(scan, 'true', TRUE);
  else if (code === 0x66) scanWord(scan, 'false', FALSE);
  else if (code === 0x6e) scanWord(scan, 'null', NULL);
  else scanNumber(scan);
}

/** After a value: closes what ends here; true when another value follows, false when the document is complete. */
function advance(scan: Scan, open: number[]): boolean {
  for (let cell = open.at(-1); cell !== undefined; cell = open.at(-1)) {
    const kind = (scan.cells[cell] ?? 0) & KIND_MASK;
    const code = skipSpace(scan);
    if (code === 0x2c) {
      scan.at++;
      if (kind === OBJECT) scanKey(scan);
      return true;
    }
    if (code !== closerOf(kind)) throw new JsonSyntaxError('Comma or closing bracket expected', scan.at);
    closeContainer(scan, open, cell);
  }
  return false;
}

/**
 * Checks that `text` is one JSON value and records where every value in it stands: CELLS_PER_VALUE numbers each, in
 * document order, an object's members as name, value, name, value. Works with its own stack, so that no nesting
 * can exhaust the call stack. Throws JsonSyntaxError.
 */
export function scanJson(text: string): Int32Array {
  const scan: Scan = { text, at: 0, cells: new Int32Array(CELLS_PER_VALUE * 256), used: 0 };
  const open: number[] = [];
  let isIncomplete = true;
  while (isIncomplete) {
    const depth = open.length;
    scanValue(scan, open);
    // A container that stays open is followed by its first value, anything else by a comma or an end.
    isIncomplete = open.length > depth || advance(scan, open);
  }
  skipSpace(scan);
  if (scan.at !== text.length) throw new JsonSyntaxError('Text after the end of the document', scan.at);
  return scan.cells;
}
