import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkFilter, filterOf } from '../../../src/engine/endpoint/event-filter.ts';

const DATA = {
  type: 'text',
  text: { body: 'hi' },
  items: [{ id: 'a', price: 12.5 }, { id: 'b' }],
  isForwarded: false,
  referral: null,
  'odd name.x': 1,
};

const takes = (...conditions: string[]) => filterOf(checkFilter(conditions))(DATA);

describe('a condition', () => {
  test.each([
    ['$.type equals "text"', true],
    ['$.type equals "image"', false],
    ['$.text.body equals "hi"', true],
    ['$.items[0].id equals "a"', true],
    ['$.items[0].price equals 12.5', true],
    ['$.items[2].id exists', false],
    ['$.items.length exists', false],
    ['$.isForwarded equals false', true],
    ['$.referral exists', true],
    ['$.referral equals null', true],
    ['$.missing equals null', false],
    ['$["odd name.x"] equals 1', true],
    ['$.type in ["image", "text"]', true],
    ['not $.type in ["image", "text"]', false],
    ['not $.context exists', true],
    ['$.text equals "hi"', false],
    ['$.constructor exists', false],
    ['$.__proto__ exists', false],
    ['$.text.body[0] exists', false],
  ])('%s is %s', (condition, expected) => {
    expect(takes(condition)).toBe(expected);
  });

  test('must hold together with all others', () => {
    expect(takes('$.type equals "text"', 'not $.context exists')).toBe(true);
    expect(takes('$.type equals "text"', '$.context exists')).toBe(false);
  });

  test.each([
    ['', /1 to 10 conditions/],
    ['text equals "x"', /must begin with "\$"/],
    ['$ exists', /names no member/],
    ['$.a', /has no operator/],
    ['$.a like "x"', /has no operator/],
    ['$.a equals', /is not JSON/],
    ['$.a equals x', /texts are written in double quotes/],
    ['$.a equals {"b": 1}', /something else/],
    ['$.a equals 12345678901234567890', /something else/],
    ['$.a in "x"', /needs a list of 1 to 50/],
    ['$.a in []', /needs a list of 1 to 50/],
    ['$.a exists now', /after "exists"/],
    ['$..a exists', /no valid path/],
    ['$.a[*] exists', /no valid path/],
    ['$.a[-1] exists', /no valid path/],
    [`$${'.a'.repeat(11)} exists`, /deeper than 10/],
    [`$.a equals "${'x'.repeat(500)}"`, /longer than 500/],
  ])('%s is refused', (condition, message) => {
    expect(() => checkFilter([condition])).toThrow(message);
  });

  test('has at most ten beside it', () => {
    expect(() => checkFilter(Array.from({ length: 11 }, () => '$.a exists'))).toThrow(/not 11/);
  });

  test('never throws for whatever an event holds, once it was checked', () => {
    const filter = filterOf(checkFilter(['not $.a.b[0].c in [1, "x", null]', '$.a exists']));
    fc.assert(fc.property(fc.json(), (json) => typeof filter(JSON.parse(json)) === 'boolean'));
  });

  test('is refused with a typed error or kept, whatever is written', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        try {
          filterOf(checkFilter([`$.a ${text}`]));
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_value' });
        }
      }),
    );
  });
});
