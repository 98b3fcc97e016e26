import {
  CELLS_PER_VALUE,
  ESCAPED_FLAG,
  JSON_KINDS,
  JsonSyntaxError,
  KIND_MASK,
  MAX_JSON_DEPTH,
  scanJson,
  TOO_DEEP_FLAG,
} from './json-scan.ts';

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
