import type { Readable } from 'node:stream';
import { ApiError, unavailable } from '../errors/api-error.ts';

type RawBodyLimits = {
  maxBodyBytes: number;
  /** Of all bodies that are being read; more are refused. */
  maxReadingBytes: number;
};

/** How much of a body that is too large is still read (and dropped), so that its sender gets to see the answer. */
const MAX_DROPPED_BYTES = 32 * 1024 * 1024;

/** A reader of request bodies as the bytes that were sent. It throws ApiError 413 and 503. */
export function createRawBodyReader({ maxBodyBytes, maxReadingBytes }: RawBodyLimits) {
  let readingBytes = 0;
  return async (payload: Readable): Promise<Buffer> => {
    const chunks: Buffer[] = [];
    let keptBytes = 0;
    let sizeBytes = 0;
    try {
      for await (const chunk of payload as AsyncIterable<Buffer>) {
        sizeBytes += chunk.length;
        if (sizeBytes > MAX_DROPPED_BYTES) break;
        if (sizeBytes > maxBodyBytes) continue;
        if (readingBytes + chunk.length > maxReadingBytes)
          throw unavailable(new Error('too many bodies at once'));
        readingBytes += chunk.length;
        keptBytes += chunk.length;
        chunks.push(chunk);
      }
    } finally {
      readingBytes -= keptBytes;
    }
    if (sizeBytes > maxBodyBytes) throw new ApiError('body_too_large');
    return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, keptBytes);
  };
}
