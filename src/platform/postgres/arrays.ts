export type Scalar = string | number | boolean | null | Date | Buffer;

/** What the rows have under each of the names, an array for each by its name: the bindings of an `unnest`. */
export function columnsOf<Name extends string>(
  rows: readonly { readonly [Key in Name]: Scalar }[],
  ...names: Name[]
): Record<Name, Scalar[]> {
  const columns = names.map((name) => [name, rows.map((row) => row[name])]);
  return Object.fromEntries(columns) as Record<Name, Scalar[]>;
}

// Arrays in forms that copy each byte once: the driver escapes every element twice and doubles bytes by writing them
// in hex, which was a fifth of all that a busy worker allocated.

/** Needs no quotes within an array, whatever its type. */
const PLAIN = /^[\w.:+/-]+$/;

/**
 * The text form of an array of short values, such as ids; PostgreSQL reads it as whatever type the statement says.
 * Undefined for elements whose text is the driver's business (times, bytes).
 */
export function arrayLiteral(elements: readonly Scalar[]): string | undefined {
  let literal = '';
  for (const element of elements) {
    if (typeof element === 'object' && element !== null) return undefined;
    literal += literal === '' ? elementLiteral(element) : `,${elementLiteral(element)}`;
  }
  return `{${literal}}`;
}

function elementLiteral(element: string | number | boolean | null): string {
  if (typeof element !== 'string') return element === null ? 'NULL' : String(element);
  if (PLAIN.test(element) && !isNullWord(element)) return element;
  return `"${element.replaceAll(/["\\]/g, '\\$&')}"`;
}

function isNullWord(text: string): boolean {
  return text.length === 4 && text.toUpperCase() === 'NULL';
}

/** The binary form of a `text[]`, for long texts. The statement must say that type: nothing is converted. */
export function textArray(texts: readonly (string | null)[]): Buffer {
  const sizes = texts.map((text) => (text === null ? NULL_SIZE : Buffer.byteLength(text)));
  return binaryArray(OIDS.text, sizes, (target, offset, index) => target.write(texts[index] ?? '', offset));
}

/** The binary form of a `bytea[]`. The statement must say that type. */
export function byteaArray(values: readonly (Buffer | null)[]): Buffer {
  const sizes = values.map((bytes) => (bytes === null ? NULL_SIZE : bytes.length));
  return binaryArray(OIDS.bytea, sizes, (target, offset, index) => values[index]?.copy(target, offset));
}

/** From pg_type; they never change. */
const OIDS = { text: 25, bytea: 17 };

const NULL_SIZE = -1;
const HEADER_BYTES = 12;
const DIMENSION_BYTES = 8;
const SIZE_BYTES = 4;

/** One dimension from 1, in the form of array_recv; an empty array has none. */
function binaryArray(
  elementOid: number,
  sizes: readonly number[],
  writeElement: (target: Buffer, offset: number, index: number) => void,
): Buffer {
  const isEmpty = sizes.length === 0;
  const bytes = sizes.reduce((sum, size) => sum + SIZE_BYTES + Math.max(size, 0), HEADER_BYTES);
  const target = Buffer.allocUnsafe(isEmpty ? bytes : bytes + DIMENSION_BYTES);
  let offset = target.writeInt32BE(isEmpty ? 0 : 1, 0);
  offset = target.writeInt32BE(sizes.includes(NULL_SIZE) ? 1 : 0, offset);
  offset = target.writeInt32BE(elementOid, offset);
  if (isEmpty) return target;
  offset = target.writeInt32BE(sizes.length, offset);
  offset = target.writeInt32BE(1, offset);
  for (const [index, size] of sizes.entries()) {
    offset = target.writeInt32BE(size, offset);
    if (size === NULL_SIZE) continue;
    writeElement(target, offset, index);
    offset += size;
  }
  return target;
}
