import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseByteRange } from '../../../../src/api/messages/received-media/received-media.ts';

describe('byte ranges', () => {
  test.each([
    ['bytes=0-0', 10, { start: 0, end: 0 }],
    ['bytes=2-5', 10, { start: 2, end: 5 }],
    ['bytes=2-', 10, { start: 2, end: 9 }],
    ['bytes=-3', 10, { start: 7, end: 9 }],
    ['bytes=-30', 10, { start: 0, end: 9 }],
    ['bytes=5-500', 10, { start: 5, end: 9 }],
    ['BYTES=1-2', 10, { start: 1, end: 2 }],
    ['bytes=10-', 10, 'unsatisfiable'],
    ['bytes=99-100', 10, 'unsatisfiable'],
    ['bytes=-0', 10, 'unsatisfiable'],
    ['bytes=0-', 0, 'unsatisfiable'],
    ['bytes=5-2', 10, 'whole'],
    ['bytes=0-1,4-5', 10, 'whole'],
    ['bytes=-', 10, 'whole'],
    ['items=0-1', 10, 'whole'],
    ['bytes=a-b', 10, 'whole'],
    ['', 10, 'whole'],
  ])('%s of %d bytes', (header, sizeBytes, expected) => {
    expect(parseByteRange(header, sizeBytes)).toEqual(expected);
  });

  test('without a header the whole file is asked for', () => {
    expect(parseByteRange(undefined, 10)).toBe('whole');
  });

  test('a range that is given is always inside the file', () => {
    const header = fc.oneof(
      fc.string(),
      fc.tuple(fc.bigInt({ min: 0n }), fc.bigInt({ min: 0n })).map(([a, b]) => `bytes=${a}-${b}`),
      fc.bigInt({ min: 0n }).map((a) => `bytes=-${a}`),
    );
    fc.assert(
      fc.property(header, fc.nat(), (text, sizeBytes) => {
        const range = parseByteRange(text, sizeBytes);
        if (typeof range === 'string') return;
        expect(range.start).toBeGreaterThanOrEqual(0);
        expect(range.end).toBeGreaterThanOrEqual(range.start);
        expect(range.end).toBeLessThan(sizeBytes);
      }),
    );
  });
});
