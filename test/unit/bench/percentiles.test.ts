import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { percentilesOf } from '../../../bench/report/percentiles.ts';

describe('percentiles', () => {
  test('are values that occurred, by nearest rank', () => {
    const values = Array.from({ length: 100 }, (_, n) => 100 - n);
    expect(percentilesOf(values)).toEqual({ p50: 50, p95: 95, p99: 99, max: 100 });
    expect(percentilesOf([7])).toEqual({ p50: 7, p95: 7, p99: 7, max: 7 });
  });

  test('of nothing are not a number, so that no table shows a 0 that nobody measured', () => {
    expect(percentilesOf([]).p50).toBeNaN();
  });

  test('have the named share of the values at or below them', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ noNaN: true }), { minLength: 1 }), (values) => {
        const { p50, p95, p99, max } = percentilesOf(values);
        const atOrBelow = (limit: number) => values.filter((value) => value <= limit).length / values.length;
        expect(atOrBelow(p50)).toBeGreaterThanOrEqual(0.5);
        expect(atOrBelow(p95)).toBeGreaterThanOrEqual(0.95);
        expect(atOrBelow(p99)).toBeGreaterThanOrEqual(0.99);
        expect(atOrBelow(max)).toBe(1);
        for (const one of [p50, p95, p99, max]) expect(values).toContain(one);
      }),
    );
  });
});
