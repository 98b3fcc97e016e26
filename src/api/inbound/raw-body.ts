import type { Readable } from 'node:stream';
import { ApiError } from '../errors/api-error.ts';

/** How much of a body that is too large is still read (and dropped), so that its sender gets to see the answer. */
export const MAX_DROPPED_BYTES = 32 * 1024 * 1024;

/** Reads a request body as the bytes that were sent. Throws ApiError 413. */
export async function readRawBody(payload: Readable, maxBodyBytes: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let chunks: Buffer[] = [];
  let sizeBytes = 0;
  const onData = (chunk: Buffer): void => {
    sizeBytes += chunk.length;
    if (sizeBytes <= maxBodyBytes) chunks.push(chunk);
    else chunks = [];
    if (sizeBytes > MAX_DROPPED_BYTES) resolve();
  };
  // Listeners and not an iterator, which would destroy the connection before it has the answer.
  payload.on('data', onData).once('end', resolve).once('error', reject);
  try {
    await promise;
  } finally {
    payload.off('data', onData);
  }
  if (sizeBytes > maxBodyBytes) throw new ApiError('body_too_large');
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}
