import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { apiKeyHints, hashApiKey, isApiKey, newApiKey } from '../../../src/features/keys/api-key.ts';

describe('a new API key', () => {
  test('is ck_ and 64 lowercase hex digits, and never the same twice', () => {
    const keys = Array.from({ length: 200 }, () => newApiKey());
    expect(new Set(keys).size).toBe(200);
    for (const key of keys) expect(isApiKey(key)).toBe(true);
  });

  test('ends in the CRC32 of its first 56 digits, whatever the random bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 28, maxLength: 28 }), (random) => {
        const key = newApiKey(() => random);
        expect(key).toHaveLength(67);
        expect(Number.parseInt(key.slice(-8), 16)).toBe(crc32(key.slice(3, 59)));
      }),
    );
  });

  test('keeps the leading zeros of its checksum', () => {
    const keys = Array.from({ length: 64 }, (_, index) => newApiKey(() => Buffer.alloc(28, index)));
    expect(keys.some((key) => key[59] === '0')).toBe(true);
    for (const key of keys) expect(isApiKey(key)).toBe(true);
  });
});

test('a key made elsewhere is a key, although its checksum is wrong', () => {
  expect(isApiKey(`ck_${'0'.repeat(64)}`)).toBe(true);
});

test.each([
  ['', 'ck_', `ck_${'A'.repeat(64)}`, `ck_${'a'.repeat(63)}`, `ck_${'a'.repeat(65)}`, `CK_${'a'.repeat(64)}`],
  [` ck_${'a'.repeat(64)}`, `ck_${'a'.repeat(64)}\n`, `ck_${'g'.repeat(64)}`, null, undefined, 7, {}],
])('%j and other things are not keys', (...values) => {
  for (const value of values) expect(isApiKey(value)).toBe(false);
});

test('the hash is SHA-256 of the whole key', () => {
  const key = newApiKey();
  expect(hashApiKey(key)).toEqual(createHash('sha256').update(key, 'utf8').digest());
});

test('the hints show 8 digits in front and 4 at the end', () => {
  const key = `ck_01234567${'f'.repeat(52)}89ab`;
  expect(apiKeyHints(key)).toEqual({ prefix: 'ck_01234567', last4: '89ab' });
});
