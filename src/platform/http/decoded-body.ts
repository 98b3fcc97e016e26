import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

const DECODERS = new Map([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

/** The content of a body that a server or a proxy compressed although we did not ask for it; null for an encoding that is not known. */
export function decodedBody(body: Readable, encoding: string | string[] | undefined): Readable | null {
  const coding = String(encoding ?? '')
    .trim()
    .toLowerCase();
  if (coding === '' || coding === 'identity') return body;
  const decoder = DECODERS.get(coding)?.();
  if (decoder === undefined) return null;
  // The reader gets the error, of either of them.
  pipeline(body, decoder, () => undefined);
  return decoder;
}
