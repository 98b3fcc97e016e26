import { describe, expect, test } from 'vitest';
import { isNoneMatch, isRangeCurrent } from '../../../../src/api/messages/received-media/received-media.ts';

const ETAG = '"abc"';

describe('entity tags', () => {
  test.each([
    ['"abc"', true],
    ['W/"abc"', true],
    ['*', true],
    ['"x", "abc"', true],
    ['"x","W/abc"', false],
    ['"abcd"', false],
    ['abc', false],
    ['', false],
    [undefined, false],
  ])('If-None-Match %s: %s', (header, expected) => {
    expect(isNoneMatch(header, ETAG)).toBe(expected);
  });

  test('If-Range honours the strong tag only', () => {
    expect(isRangeCurrent(undefined, ETAG)).toBe(true);
    expect(isRangeCurrent('"abc"', ETAG)).toBe(true);
    expect(isRangeCurrent('W/"abc"', ETAG)).toBe(false);
    expect(isRangeCurrent('Sat, 21 Nov 2026 00:00:00 GMT', ETAG)).toBe(false);
  });
});
