import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { byteaArray, textArray } from '../../../../src/platform/postgres/arrays.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { testDatabase } from '../../../support/test-database.ts';

/** PostgreSQL stores no U+0000, and no half of a surrogate pair. */
const text = fc
  .oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom(
      '',
      ' ',
      'NULL',
      'null',
      '{}',
      '{a,b}',
      '"',
      '\\',
      '\\"',
      ',',
      "'",
      '\n',
      'a,b',
      '😀',
      '\\x00',
    ),
  )
  .filter((value) => !value.includes('\u0000') && value.isWellFormed());
const texts = fc.array(fc.option(text), { maxLength: 12 });
const bytes = fc.array(fc.option(fc.uint8Array({ maxLength: 40 }).map((value) => Buffer.from(value))));

async function sent<T>(database: Database, type: string, value: never): Promise<T[]> {
  const [row] = await query<{ value: T[] }>(database, `select cast(:value as ${type}) as value`, { value });
  return row?.value ?? [];
}

describe('an array that is sent to PostgreSQL arrives as it was', () => {
  test('texts, in both forms, whatever is in them', async () => {
    const { database } = await testDatabase();
    await fc.assert(
      fc.asyncProperty(texts, async (values) => {
        expect(await sent(database, 'text[]', values as never)).toEqual(values);
        expect(await sent(database, 'text[]', textArray(values) as never)).toEqual(values);
      }),
    );
  });

  test('bytes, in both forms', async () => {
    const { database } = await testDatabase();
    await fc.assert(
      fc.asyncProperty(bytes, async (values) => {
        expect(await sent(database, 'bytea[]', values as never)).toEqual(values);
        expect(await sent(database, 'bytea[]', byteaArray(values) as never)).toEqual(values);
      }),
    );
  });

  test.each([
    ['bigint[]', ['9007199254740993', '-1', null]],
    ['integer[]', [1, -2, null]],
    ['boolean[]', [true, false, null]],
    ['double precision[]', [0.1, -1e300, null]],
    ['uuid[]', ['019aa2b3-7c4d-7e8f-9a0b-1c2d3e4f5061', null]],
    ['timestamptz[]', [new Date('2026-11-21T10:00:00.123Z'), null]],
  ])('%s', async (type, values) => {
    expect(await sent((await testDatabase()).database, type, values as never)).toEqual(values);
  });

  test('json keeps its text', async () => {
    const values = ['{"a":"\\"b\\\\"}', 'null', '[1.0,"NULL"]', '"x"', '1'];
    const got = await query<{ value: string }>(
      (await testDatabase()).database,
      'select cast(v as text) as value from unnest(cast(:values as json[])) with ordinality as t (v, n) order by n',
      { values },
    );
    expect(got.map(({ value }) => value)).toEqual(values);
  });

  test('what no text can hold is refused in both forms, and the connection goes on', async () => {
    const { database } = await testDatabase();
    for (const values of [['a\u0000b'], textArray(['a\u0000b'])]) {
      await expect(sent(database, 'text[]', values as never)).rejects.toMatchObject({ code: '22021' });
    }
    expect(await sent(database, 'text[]', ['a'] as never)).toEqual(['a']);
  });
});
