import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { laneOf } from '../../../src/deliveries/ordering-key.ts';

describe('lanes', () => {
  test.each([
    'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQQA=',
    'ord-1001',
    'payment:::captured',
    'मसाला 01',
    'x'.repeat(200),
  ])('keep the readable key %.30s', (key) => {
    expect(laneOf(key)).toBe(key);
  });

  test.each(['', 'x'.repeat(201), 'ä'.repeat(101), 'a\nb', 'a\0', '\ud800', 'a\u2028', 'sha256:00'])(
    'hash what is too long, unprintable or looks like a hash: %j',
    (key) => {
      expect(laneOf(key)).toMatch(/^sha256:[0-9a-f]{64}$/);
    },
  );

  test('differ for different keys, and fit the index', () => {
    const key = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      fc.string({ minLength: 190, maxLength: 210 }),
    );
    fc.assert(
      fc.property(key, key, (left, right) => {
        expect(laneOf(left) === laneOf(right)).toBe(left === right);
        expect(Buffer.byteLength(laneOf(left))).toBeLessThanOrEqual(200);
        if (left !== '')
          expect(laneOf(laneOf(left)).startsWith('sha256:')).toBe(laneOf(left).startsWith('sha256:'));
      }),
    );
  });
});
