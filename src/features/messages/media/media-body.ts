import { createHash } from 'node:crypto';
import { SNIFF_BYTES } from './media-type.ts';
import { MediaTooLarge, WrongBytes } from './media-verdict.ts';

const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/** 32 bytes of base64 (44 characters, in webhooks) or hexadecimal (64, in lookups). Null for anything else, which then cannot be checked. */
export function decodeSha256(text: string | null): Buffer | null {
  const trimmed = text?.trim() ?? '';
  if (HEX.test(trimmed)) return Buffer.from(trimmed, 'hex');
  return BASE64.test(trimmed) ? Buffer.from(trimmed, 'base64') : null;
}

export type BodyRules = { maxBytes: number; expectedBytes: number | null; expectedSha256: Buffer | null };

export type CheckedBytes = { sizeBytes: number; sha256: string; head: Buffer };

/**
 * Counts, hashes and bounds the bytes on their way. `source` throws WrongBytes at its end, before a store can make the object visible, or
 * MediaTooLarge as soon as it is; `result` is for after it.
 */
export function checkBody(
  body: AsyncIterable<Uint8Array>,
  rules: BodyRules,
  onBytes: (receivedBytes: number) => void,
): { source: AsyncGenerator<Uint8Array>; result: () => CheckedBytes } {
  const hash = createHash('sha256');
  let head = Buffer.alloc(0);
  let sizeBytes = 0;
  let digest: Buffer | null = null;

  async function* source(): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      sizeBytes += chunk.length;
      checkProgress(sizeBytes, rules);
      if (head.length < SNIFF_BYTES) head = Buffer.concat([head, chunk]).subarray(0, SNIFF_BYTES);
      hash.update(chunk);
      onBytes(sizeBytes);
      yield chunk;
    }
    digest = hash.digest();
    checkEnd(sizeBytes, digest, rules);
  }
  return {
    source: source(),
    result: () => {
      if (digest === null) throw new Error('the download has not ended');
      return { sizeBytes, sha256: digest.toString('hex'), head };
    },
  };
}

function checkProgress(sizeBytes: number, { maxBytes, expectedBytes }: BodyRules): void {
  if (expectedBytes !== null && sizeBytes > expectedBytes) {
    throw new WrongBytes(`more than the announced ${expectedBytes} bytes`);
  }
  if (sizeBytes > maxBytes) throw new MediaTooLarge(sizeBytes, maxBytes);
}

function checkEnd(sizeBytes: number, digest: Buffer, { expectedBytes, expectedSha256 }: BodyRules): void {
  if (expectedBytes !== null && sizeBytes < expectedBytes) {
    throw new WrongBytes(`${sizeBytes} instead of the announced ${expectedBytes} bytes`);
  }
  if (expectedSha256 !== null && !expectedSha256.equals(digest)) {
    throw new WrongBytes(
      `their SHA-256 is ${digest.toString('hex')}, announced was ${expectedSha256.toString('hex')}`,
    );
  }
  if (sizeBytes === 0 && expectedSha256 === null) throw new WrongBytes('there are none');
}
