import { createHash } from 'node:crypto';

type JsonTape = { readonly text: string; readonly cells: Int32Array };

/** A value in a JSON text: what it is and where it stands (`start` inclusive, `end` exclusive, UTF-16 units). */
export type JsonNode = {
  readonly kind: (typeof JSON_KINDS)[number];
  readonly start: number;
  readonly end: number;
  /** Something in it lies deeper than MAX_JSON_DEPTH levels, counted from the root of the document. */
  readonly tooDeep: boolean;
  readonly tape: JsonTape;
  readonly cell: number;
};

type JsonMember = { readonly name: JsonNode; readonly value: JsonNode };

function nodeAt(tape: JsonTape, cell: number): JsonNode {
  const head = tape.cells[cell] ?? 0;
  return {
    kind: JSON_KINDS[head & KIND_MASK] ?? 'null',
    start: tape.cells[cell + 1] ?? 0,
    end: tape.cells[cell + 2] ?? 0,
    tooDeep: (head & TOO_DEEP_FLAG) !== 0,
    tape,
    cell,
  };
}

function cellAfter(tape: JsonTape, cell: number): number {
  return tape.cells[cell + 3] ?? 0;
}

function decodeString(tape: JsonTape, cell: number): string {
  const start = tape.cells[cell + 1] ?? 0;
  const end = tape.cells[cell + 2] ?? 0;
  const isEscaped = ((tape.cells[cell] ?? 0) & ESCAPED_FLAG) !== 0;
  return isEscaped
    ? (JSON.parse(tape.text.slice(start, end)) as string)
    : tape.text.slice(start + 1, end - 1);
}

/**
 * Parses a JSON text into nodes that know their place in it, so that values can be passed on as they were written.
 * Accepts what JSON.parse accepts. Nesting beyond 64 levels is a JsonSyntaxError, or, with `deepNodes: 'mark'`, a
 * flag on every node that contains it. Throws JsonSyntaxError with the offset.
 */
export function parseJson(text: string, options: { deepNodes?: 'reject' | 'mark' } = {}): JsonNode {
  const root = nodeAt({ text, cells: scanJson(text) }, 0);
  if (root.tooDeep && options.deepNodes !== 'mark') {
    throw new JsonSyntaxError(`More than ${MAX_JSON_DEPTH} levels`, root.start);
  }
  return root;
}

/** The value of an object's member; of several members with one name the last, as with JSON.parse; null if none. */
export function member(node: JsonNode | null, name: string): JsonNode | null {
  if (node === null || node.kind !== 'object') return null;
  const { tape } = node;
  const { text, cells } = tape;
  const stop = cellAfter(tape, node.cell);
  let found = -1;
  for (let key = node.cell + CELLS_PER_VALUE; key < stop; key = cellAfter(tape, key + CELLS_PER_VALUE)) {
    const start = cells[key + 1] ?? 0;
    const isEscaped = ((cells[key] ?? 0) & ESCAPED_FLAG) !== 0;
    const isSame = isEscaped
      ? decodeString(tape, key) === name
      : (cells[key + 2] ?? 0) - start - 2 === name.length && text.startsWith(name, start + 1);
    if (isSame) found = key + CELLS_PER_VALUE;
  }
  return found < 0 ? null : nodeAt(tape, found);
}

/** All members of an object in document order, repeated names included; none for any other kind. */
export function members(node: JsonNode | null): JsonMember[] {
  if (node === null || node.kind !== 'object') return [];
  const { tape } = node;
  const stop = cellAfter(tape, node.cell);
  const found: JsonMember[] = [];
  for (let key = node.cell + CELLS_PER_VALUE; key < stop; key = cellAfter(tape, key + CELLS_PER_VALUE)) {
    found.push({ name: nodeAt(tape, key), value: nodeAt(tape, key + CELLS_PER_VALUE) });
  }
  return found;
}

/** The elements of an array; none for any other kind. */
export function items(node: JsonNode | null): JsonNode[] {
  if (node === null || node.kind !== 'array') return [];
  const { tape } = node;
  const stop = cellAfter(tape, node.cell);
  const found: JsonNode[] = [];
  for (let cell = node.cell + CELLS_PER_VALUE; cell < stop; cell = cellAfter(tape, cell)) {
    found.push(nodeAt(tape, cell));
  }
  return found;
}

/** A string's decoded value; null for any other kind. It may hold U+0000 and lone surrogates. */
export function stringOf(node: JsonNode | null): string | null {
  return node?.kind === 'string' ? decodeString(node.tape, node.cell) : null;
}

/** Exactly what is written in the document for this value. */
export function sourceOf(node: JsonNode): string {
  return node.tape.text.slice(node.start, node.end);
}

/** Reads an id leniently: a string's value or a number as it is written; null for any other kind. */
export function textOf(node: JsonNode | null): string | null {
  return node?.kind === 'number' ? sourceOf(node) : stringOf(node);
}

/** Deepest nesting that is passed on: common parsers at the receiving end (System.Text.Json) stop at 64. */
export const MAX_JSON_DEPTH = 64;

/** Cells of one value on the tape: kind and flags, start, end (exclusive), index of the entry after its subtree. */
const CELLS_PER_VALUE = 4;
const KIND_MASK = 7;
const ESCAPED_FLAG = 8;
const TOO_DEEP_FLAG = 16;

/** Names of the kinds, in the order of their codes on the tape. */
const JSON_KINDS = ['null', 'true', 'false', 'number', 'string', 'array', 'object'] as const;
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

/** Steps over one escape sequence whose backslash is at scan.at. */
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

/** Opens the array or object at scan.at; one without content is closed at once. */
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
 * document order, an object's members as name, value, name, value. Works with a stack of its own, so that no nesting
 * can exhaust the call stack. Throws JsonSyntaxError.
 */
function scanJson(text: string): Int32Array {
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

/** Replaces the text from `start` to `end` (offsets in the document) by `text`. */
export type TextEdit = { readonly start: number; readonly end: number; readonly text: string };

/** The source text of a node after some edits inside it; everything else stays byte for byte. Edits must not overlap. */
export function sourceWithEdits(node: JsonNode, edits: readonly TextEdit[]): string {
  const { text } = node.tape;
  let result = '';
  let at = node.start;
  for (const edit of edits.toSorted((left, right) => left.start - right.start)) {
    result += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return result + text.slice(at, node.end);
}

/** Longest id that is accepted, in UTF-16 units; real ones have fewer than 140. */
export const MAX_ID_CHARS = 512;

/** An id of upstream is longer than MAX_ID_CHARS: cutting it would make it another id. */
class OversizedIdError extends Error {
  constructor(lengthChars: number) {
    super(`An id has ${lengthChars} characters, more than ${MAX_ID_CHARS}`);
    this.name = 'OversizedIdError';
  }
}

/**
 * Text that a PostgreSQL text column accepts: U+0000 and lone surrogates become U+FFFD, and what is longer than
 * `maxChars` UTF-16 units is cut without splitting a character.
 */
export function storableText(text: string, maxChars: number): string {
  const isCutInsidePair = text.length > maxChars && isHighSurrogate(text.charCodeAt(maxChars - 1));
  const kept = text.slice(0, isCutInsidePair ? maxChars - 1 : maxChars);
  return kept.toWellFormed().replaceAll('\0', '\ufffd');
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** An id as text, exactly as upstream wrote it (for comparing); null when it is missing, empty or no id at all. */
export function rawIdOf(node: JsonNode | null): string | null {
  return textOf(node) || null;
}

/** An id as storable text; null when it is missing, empty or no id at all. Throws OversizedIdError. */
export function idOf(node: JsonNode | null): string | null {
  const id = rawIdOf(node);
  return id === null ? null : storableId(id);
}

/** An id as storable text; null also when it is oversized, for ids that may be missing. */
export function boundedIdOf(node: JsonNode | null): string | null {
  const id = rawIdOf(node);
  return id === null || id.length > MAX_ID_CHARS ? null : storableId(id);
}

/**
 * An id as storable text. One that had to be changed gets a digest of what upstream wrote behind it, so that two
 * different ids never become one. Throws OversizedIdError.
 */
export function storableId(id: string): string {
  if (id.length > MAX_ID_CHARS) throw new OversizedIdError(id.length);
  const stored = storableText(id, MAX_ID_CHARS);
  if (stored === id) return id;
  const digest = createHash('sha256').update(Buffer.from(id, 'utf16le')).digest('hex').slice(0, 16);
  return `${stored}~${digest}`;
}

/** A describing text (name, caption), storable and cut to `maxChars` UTF-16 units; null when missing or empty. */
export function shortTextOf(node: JsonNode | null, maxChars: number): string | null {
  const text = textOf(node);
  return text ? storableText(text, maxChars) : null;
}

/** The moment, up to the year 9999, that text names in seconds or milliseconds since 1970; null for anything else. */
export function epochTimeOf(text: string | null): Date | null {
  if (text === null || !/^\d{1,20}(\.\d{1,9})?$/.test(text)) return null;
  // In seconds so large a number would lie after the year 5138.
  const ms = Number(text) >= 100_000_000_000 ? Number(text) : Number(text) * 1_000;
  return ms > 0 && ms <= 253_402_300_799_000 ? new Date(Math.trunc(ms)) : null;
}
