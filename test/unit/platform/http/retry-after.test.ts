import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseRetryAfter } from '../../../../src/platform/http/retry-after.ts';

const NOW_MS = Date.UTC(2026, 8, 21, 14, 13, 20);
const DAY_MS = 86_400_000;

describe('parseRetryAfter', () => {
  test.each([
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['86401', DAY_MS],
    ['9'.repeat(400), DAY_MS],
    ['Mon, 21 Sep 2026 14:14:20 GMT', 60_000],
    ['Monday, 21-Sep-26 14:14:20 GMT', 60_000],
    ['Mon Sep 21 14:14:20 2026', 60_000],
    ['Mon, 21 Sep 2026 14:13:19 GMT', 0],
    ['Fri, 01 Jan 2038 00:00:00 GMT', DAY_MS],
  ])('reads %j as %i ms', (header, expected) => expect(parseRetryAfter(header, NOW_MS)).toBe(expected));

  test.each([
    [undefined],
    [''],
    ['-1'],
    ['1.5'],
    ['1e3'],
    ['0x10'],
    ['soon'],
    ['2 foo'],
    ['2026-09-21T14:14:20Z'],
    ['Mon, 99 Xxx 2026 14:14:20 GMT'],
    ['10, 20'],
    ['١٢'],
  ])('does not believe %j', (header) => expect(parseRetryAfter(header, NOW_MS)).toBeNull());

  test('whatever the header says, the answer is null or within 24 hours', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
        ),
        (header) => {
          const waitMs = parseRetryAfter(header, NOW_MS);
          expect(waitMs === null || (waitMs >= 0 && waitMs <= DAY_MS)).toBe(true);
        },
      ),
    );
  });
});
