import type { Readable } from 'node:stream';

/** How much of a body that is refused is still read (and dropped), so that its sender gets to see the answer. */
export const MAX_DROPPED_BYTES = 32 * 1024 * 1024;

/** Reads a request body to its end; null: it has more than `mostBytes`. Rejects when the client goes. */
export async function readBody(body: Readable, mostBytes: number): Promise<Buffer | null> {
  let chunks: Buffer[] = [];
  let sizeBytes = 0;
  let onData = (_chunk: Buffer): void => {};
  try {
    await new Promise<void>((resolve, reject) => {
      onData = (chunk) => {
        sizeBytes += chunk.length;
        if (sizeBytes <= mostBytes) chunks.push(chunk);
        else chunks = [];
        if (sizeBytes > MAX_DROPPED_BYTES) resolve();
      };
      // Listeners and not an iterator, which would destroy the connection before it has the answer.
      body.on('data', onData).once('end', resolve).once('error', reject);
    });
  } finally {
    body.off('data', onData);
  }
  if (sizeBytes > mostBytes) return null;
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}
