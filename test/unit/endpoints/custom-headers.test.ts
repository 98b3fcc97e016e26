import { validateHeaderName, validateHeaderValue } from 'node:http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { changeCustomHeaders } from '../../../src/features/endpoints/endpoint-headers.ts';
import { anyText } from '../../support/any-text.ts';

const added = (change: Record<string, string | null>) => changeCustomHeaders({}, change);

describe('headers that a tenant adds', () => {
  test('a text sets, null removes, what is not named stays, and case does not matter', () => {
    const present = { Authorization: 'Bearer old', 'X-Shop': '1', 'X-Gone': '2' };
    expect(
      changeCustomHeaders(present, { authorization: 'Bearer new', 'x-gone': null, 'X-None': null }),
    ).toEqual({ ok: true, headers: { authorization: 'Bearer new', 'X-Shop': '1' } });
    expect(present).toEqual({ Authorization: 'Bearer old', 'X-Shop': '1', 'X-Gone': '2' });
  });

  test.each([
    ['Bearer abc.def', true],
    ['a\tb', true],
    ['x', true],
    ['', false],
    [' x', false],
    ['x ', false],
    ['a\r\nHost: evil', false],
    ['a\0b', false],
    ['käse', false],
    ['\u{1f600}', false],
    ['\x7f', false],
  ])('value %j: %s', (value, ok) => {
    expect(added({ 'X-Shop': value }).ok).toBe(ok);
  });

  test.each([
    ...['', ' ', 'a b', 'a:b', 'a\nb', 'ä', 'X-Shop ', '(x)', 'x\0'],
    ...['Host', 'content-length', 'Webhook-Id', 'X-SERVICE-Signature', 'Transfer-Encoding', 'user-agent'],
  ])('refuses the name %j', (name) => {
    expect(added({ [name]: 'x' }).ok).toBe(false);
  });

  test('refuses one name in two spellings', () => {
    expect(added({ 'X-Shop': '1', 'x-shop': '2' })).toMatchObject({ ok: false });
  });

  test('holds at most 20 headers and 4 KiB in all', () => {
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`X-${n}`, 'x']));
    expect(added(many(20)).ok).toBe(true);
    expect(added(many(21))).toMatchObject({ ok: false, message: expect.stringContaining('at most 20') });
    expect(added({ 'X-A': 'x'.repeat(4_093) }).ok).toBe(true);
    expect(added({ 'X-A': 'x'.repeat(4_094) })).toMatchObject({ ok: false });
    expect(changeCustomHeaders({ 'X-A': 'x'.repeat(4_000) }, { 'X-B': 'x'.repeat(4_000) }).ok).toBe(false);
  });

  test('never repeats a value in a message, and passes only what Node sends', () => {
    fc.assert(
      fc.property(
        fc.dictionary(anyText({ maxLength: 8 }), anyText()),
        anyText({ minLength: 12, maxLength: 5_000 }),
        (change, secret) => {
          const verdict = added({ ...change, 'X-Secret': secret });
          if (!verdict.ok) expect(verdict.message).not.toContain(secret);
          for (const [name, value] of Object.entries(verdict.ok ? verdict.headers : {})) {
            validateHeaderName(name);
            validateHeaderValue(name, value);
          }
        },
      ),
    );
  });

  test('a header named __proto__ is a header and nothing else', () => {
    const verdict = added(JSON.parse('{"__proto__":"x"}'));
    expect(verdict.ok && Object.entries(verdict.headers)).toEqual([['__proto__', 'x']]);
    expect(JSON.stringify(verdict.ok && verdict.headers)).toBe('{"__proto__":"x"}');
  });
});
