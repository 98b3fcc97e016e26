import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { prepared } from '../../../../src/platform/postgres/sql.ts';

describe('bindings of a statement', () => {
  test('by position: each ? is the next parameter', () => {
    expect(
      prepared('select :value::uuid, :value2 where a = any (:a::text[])', {
        value: 'x',
        value2: 1,
        a: ['a', 'b'],
      }),
    ).toMatchObject({
      text: 'select $1::uuid, $2 where a = any ($3::text[])',
      values: ['x', 1, '{a,b}'],
    });
  });

  test('by name: a name that stands twice is two parameters with the same value', () => {
    const statement = prepared('select :from where n >= :from and n < cast(:to as integer)', {
      from: 3,
      to: 9,
    });
    expect(statement).toMatchObject({
      text: 'select $1 where n >= $2 and n < cast($3 as integer)',
      values: [3, 3, 9],
    });
  });

  test('a cast is no name', () => {
    expect(prepared(`select a::text, :b::text, now()::date, x.y::float8[]`, { b: 'b' })).toMatchObject({
      text: 'select a::text, $1::text, now()::date, x.y::float8[]',
      values: ['b'],
    });
  });

  test('a time of day, a slice and an assignment are no names', () => {
    const text = `select '12:30:45', list[1:2], f(a := 1)`;
    expect(prepared(text, {})).toMatchObject({ text, values: [] });
  });

  test('names may be longer than one another and hold digits and underscores', () => {
    expect(prepared('select :id, :id2, :id_list', { id: 1, id2: 2, id_list: [3] })).toMatchObject({
      text: 'select $1, $2, $3',
      values: [1, 2, '{3}'],
    });
  });

  test('null, false, 0 and empty are values; a missing one is an error that names it', () => {
    const text = 'select :a, :b, :c, :d';
    expect(prepared(text, { a: null, b: false, c: 0, d: '' }).values).toEqual([null, false, 0, '']);
    expect(() => prepared(text, { a: 1, b: 2, c: 3 })).toThrow('the statement has no value for :d');
  });

  test('values that nothing asks for are left out', () => {
    expect(prepared('select :wanted', { wanted: 1, more: 2 }).values).toEqual([1]);
  });
});

describe('a statement', () => {
  test('has one name for ever, and another text another one', () => {
    const [first, second] = ['select 1 as first where :n = 1', 'select 1 as second where :n = 1'];
    const { name } = prepared(first, { n: 1 });
    expect(name).toMatch(/^s\d+$/);
    expect(prepared(first, { n: 2 })).toMatchObject({ name, values: [2] });
    expect(prepared(second, { n: 1 }).name).not.toBe(name);
  });

  test('whose text is made up at run time does not fill the server’s memory: beyond 1,000 it has no name', () => {
    const names = Array.from({ length: 1_200 }, (_, n) => prepared(`select ${n}, :n`, { n }).name);
    expect(names.at(-1)).toBeUndefined();
    expect(prepared('select 1199, :value', { value: 7 })).toEqual({ text: 'select 1199, $1', values: [7] });
    expect(names[0]).toBeDefined();
  });
});

test('property: values arrive in the order of their names', () => {
  const names = fc.array(fc.constantFrom('a', 'b1', 'longer_name', 'camelCase'), { maxLength: 20 });
  fc.assert(
    fc.property(names, fc.array(fc.integer(), { minLength: 4, maxLength: 4 }), (order, numbers) => {
      const [a = 0, b1 = 0, longer_name = 0, camelCase = 0] = numbers;
      const bindings: Record<string, number> = { a, b1, longer_name, camelCase };
      const { text, values } = prepared(
        `select ${order.map((name) => `:${name}::int`).join(', ')}`,
        bindings,
      );
      expect(values).toEqual(order.map((name) => bindings[name]));
      expect(text).toBe(`select ${order.map((_, index) => `$${index + 1}::int`).join(', ')}`);
    }),
  );
});
