import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hasMoreValues } from '../../../../src/platform/json/json-values.ts';

function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, one) => sum + valuesIn(one), 1);
}

test('the values of a JSON text are counted without parsing it, however it is written', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue(), { minLength: 1 }), fc.constantFrom(0, 2), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      const count = valuesIn(JSON.parse(text));
      expect([hasMoreValues(text, count), hasMoreValues(text, count - 1)], text).toEqual([false, true]);
    }),
  );
});
