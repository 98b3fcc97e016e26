import type { Client } from 'minio';

/** The smallest part that S3 accepts; at most one part is held in memory. */
export const PART_BYTES = 5 * 1024 * 1024;

type Target = { client: Client; bucket: string; key: string; headers: Record<string, string> };
type Part = { part: number; etag: string };

/**
 * Stores the bytes of `source` as one object. Nothing becomes visible before the source has ended: if it throws, or
 * the store fails, the upload is aborted and the error passed on. Returns how many bytes were stored.
 */
export async function uploadObject(target: Target, source: AsyncIterable<Uint8Array>): Promise<number> {
  let uploadId: string | null = null;
  let sizeBytes = 0;
  const parts: Part[] = [];
  try {
    for await (const { bytes, isLast } of partsOf(source)) {
      sizeBytes += bytes.length;
      if (isLast && uploadId === null) {
        await putWhole(target, bytes);
        return sizeBytes;
      }
      uploadId ??= await begin(target);
      parts.push(await putPart(target, uploadId, parts.length + 1, bytes));
    }
    if (uploadId !== null) {
      await target.client.completeMultipartUpload(target.bucket, target.key, uploadId, parts);
    }
    return sizeBytes;
  } catch (error) {
    if (uploadId !== null) await abort(target, uploadId);
    throw error;
  }
}

/** Cuts a stream into parts of PART_BYTES; the last one, possibly empty, is marked. */
async function* partsOf(
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ bytes: Buffer; isLast: boolean }> {
  let chunks: Uint8Array[] = [];
  let collectedBytes = 0;
  for await (const chunk of source) {
    chunks.push(chunk);
    collectedBytes += chunk.length;
    while (collectedBytes > PART_BYTES) {
      const collected = Buffer.concat(chunks);
      yield { bytes: collected.subarray(0, PART_BYTES), isLast: false };
      chunks = [collected.subarray(PART_BYTES)];
      collectedBytes -= PART_BYTES;
    }
  }
  yield { bytes: Buffer.concat(chunks), isLast: true };
}

async function putWhole({ client, bucket, key, headers }: Target, bytes: Buffer): Promise<void> {
  await client.putObject(bucket, key, bytes, bytes.length, headers);
}

async function begin({ client, bucket, key, headers }: Target): Promise<string> {
  return await client.initiateNewMultipartUpload(bucket, key, headers);
}

async function putPart(target: Target, uploadID: string, partNumber: number, bytes: Buffer): Promise<Part> {
  const { client, bucket: bucketName, key: objectName } = target;
  const headers = { 'Content-Length': bytes.length };
  const { etag } = await client.uploadPart({ bucketName, objectName, uploadID, partNumber, headers }, bytes);
  return { part: partNumber, etag };
}

/** Best effort: the store itself drops uploads that are never completed. */
async function abort({ client, bucket, key }: Target, uploadId: string): Promise<void> {
  await client.abortMultipartUpload(bucket, key, uploadId).catch(() => undefined);
}
