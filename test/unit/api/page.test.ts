import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { makePageCursors } from '../../../src/api/external/page.ts';

const OLD = Buffer.alloc(32, 1);
const NEW = Buffer.alloc(32, 2);

const scopes = fc.array(fc.option(fc.string()), { minLength: 1, maxLength: 4 });
const positions = fc.array(fc.string(), { minLength: 1, maxLength: 3 });

describe('page cursors', () => {
  const cursors = makePageCursors([NEW]);

  test('give back the position they were made with', () => {
    fc.assert(
      fc.property(scopes, positions, (scope, position) => {
        expect(cursors.decode(scope, cursors.encode(scope, position))).toEqual(position);
      }),
    );
  });

  test('do not open in any other scope', () => {
    fc.assert(
      fc.property(scopes, scopes, positions, (scope, other, position) => {
        fc.pre(JSON.stringify(scope) !== JSON.stringify(other));
        expect(cursors.decode(other, cursors.encode(scope, position))).toBeNull();
      }),
    );
  });

  test('do not open when any character is changed, added or left out', () => {
    const cursor = cursors.encode(['waba', 'conversations', null], ['2026-11-20 10:00:00.123456+00', '42']);
    fc.assert(
      fc.property(
        fc.nat(cursor.length - 1),
        fc.constantFrom(...'AZaz09-_=.~ \0é'),
        fc.nat(2),
        (at, char, how) => {
          const changed =
            cursor.slice(0, at) + (how === 2 ? '' : char) + cursor.slice(how === 1 ? at : at + 1);
          fc.pre(changed !== cursor);
          expect(cursors.decode(['waba', 'conversations', null], changed)).toBeNull();
        },
      ),
    );
  });

  test('nothing made up opens, and nothing throws', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.base64String(), fc.string({ minLength: 2000, maxLength: 3000 })),
        (text) => {
          expect(cursors.decode(['waba'], text)).toBeNull();
        },
      ),
    );
  });

  test('outlive the exchange of secrets while the old one is still there, and no longer', () => {
    const cursor = makePageCursors([OLD]).encode(['waba'], ['1']);
    expect(makePageCursors([NEW, OLD]).decode(['waba'], cursor)).toEqual(['1']);
    expect(makePageCursors([NEW]).decode(['waba'], cursor)).toBeNull();
    expect(() => makePageCursors([])).toThrow();
  });
});
