import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeSha256 } from '../../../../src/features/messages/media/media-body.ts';

test('a digest in base64 and in hexadecimal is the same 32 bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const digest = createHash('sha256').update(bytes).digest();
      expect(decodeSha256(digest.toString('base64'))).toEqual(digest);
      expect(decodeSha256(digest.toString('hex'))).toEqual(digest);
      expect(decodeSha256(digest.toString('hex').toUpperCase())).toEqual(digest);
      expect(decodeSha256(digest.toString('base64url'))).toEqual(digest);
    }),
  );
});

test('what is no SHA-256 is not guessed at', () => {
  const others = [null, '', 'abc', 'A'.repeat(42), 'z'.repeat(64), 'a'.repeat(63), `${'A'.repeat(43)}\0`];
  for (const text of others) expect(decodeSha256(text)).toBeNull();
});
