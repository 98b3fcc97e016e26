/** Both ends inclusive. */
export type ByteRange = { start: number; end: number };

const SINGLE_RANGE = /^bytes=\s*(\d*)-(\d*)\s*$/i;

/**
 * What a Range header (RFC 9110 §14.2) asks of a file of `sizeBytes`: a part, `unsatisfiable`, or `whole` for no header,
 * several ranges, other units and malformed text, all of which a server may ignore.
 */
export function parseByteRange(
  header: string | undefined,
  sizeBytes: number,
): ByteRange | 'whole' | 'unsatisfiable' {
  const match = SINGLE_RANGE.exec(header ?? '');
  if (match === null) return 'whole';
  const [, first = '', last = ''] = match;
  if (first === '') return last === '' ? 'whole' : suffixRange(Number(last), sizeBytes);
  const start = Number(first);
  const end = last === '' ? Number.POSITIVE_INFINITY : Number(last);
  if (end < start) return 'whole';
  if (start >= sizeBytes) return 'unsatisfiable';
  return { start, end: Math.min(end, sizeBytes - 1) };
}

/** The last `lengthBytes` of the file. */
function suffixRange(lengthBytes: number, sizeBytes: number): ByteRange | 'unsatisfiable' {
  if (lengthBytes === 0 || sizeBytes === 0) return 'unsatisfiable';
  return { start: Math.max(sizeBytes - lengthBytes, 0), end: sizeBytes - 1 };
}
