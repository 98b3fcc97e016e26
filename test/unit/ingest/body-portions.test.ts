import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { makeIntakePace } from '../../../src/ingest/intake/intake-pace.ts';
import { type BodyPortion, type ReadBody, sharePortions } from '../../../src/ingest/intake/portions.ts';
import type { UpstreamItem } from '../../../src/ingest/split/upstream-items.ts';

let ids = 0;

function read(wabaId: string, itemCount: number, until: string | null = null): ReadBody {
  const paths = Array.from({ length: itemCount }, (_, n) => `item[${n}]`);
  const id = String(++ids);
  const row = {
    shard: 0,
    day: '2026-11-22',
    id,
    wabaId,
    body: Buffer.alloc(0),
    signedFor: null,
    notes: null,
  };
  const items = paths.map((path) => ({ path, wabaId })) as UpstreamItem[];
  const partly = until === null ? null : { until, notes: [] };
  return { body: { ...row, partly }, items, quarantined: [], unreadable: null };
}

const shown = (portions: readonly BodyPortion[]) =>
  portions.map(({ read: { body }, items, isLast }) => [body.wabaId, items.length, isLast]);
const one = () => 1;

describe('what a transaction takes in of bodies that wait', () => {
  test('is all of them when they fit', () => {
    expect(shown(sharePortions([read('a', 3), read('b', 0), read('a', 2)], 5, one))).toEqual([
      ['b', 0, true],
      ['a', 3, true],
      ['a', 2, true],
    ]);
  });

  test('is a share of each WABA; what one does not need goes to the others', () => {
    const bodies = [read('a', 40), read('a', 40), read('a', 40), read('b', 2), read('c', 60)];
    expect(shown(sharePortions(bodies, 102, one))).toEqual([
      ['b', 2, true],
      ['c', 50, false],
      ['a', 40, true],
    ]);
  });

  test('of a body that alone is too much, is a part, from where the one before ended, of one item at least', () => {
    const body = read('a', 10, 'item[3]');
    const [portion] = sharePortions([body], 4, one);
    expect(portion?.items.map(({ path }) => path)).toEqual(['item[4]', 'item[5]', 'item[6]', 'item[7]']);
    expect(shown(sharePortions([read('a', 2), read('b', 2)], 1, () => 100))).toEqual([
      ['a', 1, false],
      ['b', 1, false],
    ]);
  });

  test('keeps the order of each WABA and exceeds the budget by one item of each at most', () => {
    const sizes = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(30)), { maxLength: 30 });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 100 }), (given, budget) => {
        const bodies = given.map(([wabaId, count]) => read(wabaId, count));
        const portions = sharePortions(bodies, budget, one);
        for (const wabaId of ['a', 'b', 'c']) {
          const own = bodies.filter(({ body }) => body.wabaId === wabaId);
          const taken = portions.filter((portion) => portion.read.body.wabaId === wabaId);
          expect(taken.map((portion) => portion.read)).toEqual(own.slice(0, taken.length));
          expect(taken.slice(0, -1).every(({ isLast }) => isLast)).toBe(true);
          if (own.length > 0) expect(taken.length).toBeGreaterThan(0);
        }
        const taken = portions.reduce((sum, { items }) => sum + items.length, 0);
        expect(taken).toBeLessThanOrEqual(budget + 3);
      }),
    );
  });
});

describe('the size of a transaction', () => {
  const LEFT = { isNothing: false, nextWabaId: 'w' };

  test('is halved with each failure down to one item of one WABA, and grows again afterwards', () => {
    const pace = makeIntakePace();
    const most = pace.size();
    pace.taking(LEFT);
    pace.failed();
    expect(pace.size()).toEqual({ cost: most.cost / 2, wabas: most.wabas / 2 });
    expect(pace.afterWabaId()).toBe('w');
    for (let n = 0; n < 20; n += 1) pace.failed();
    expect(pace.size()).toEqual({ cost: 1, wabas: 1 });
    for (let n = 0; n < 20; n += 1) {
      pace.taking(LEFT);
      pace.done(10);
    }
    expect(pace.size()).toEqual(most);
  });

  test('shrinks where it takes long, but not to nothing', () => {
    const pace = makeIntakePace();
    for (let n = 0; n < 20; n += 1) {
      pace.taking(LEFT);
      pace.done(5_000);
    }
    expect(pace.size().cost).toBe(500);
  });

  test('WABAs take turns while something is left', () => {
    const pace = makeIntakePace();
    expect(pace.afterWabaId()).toBeNull();
    pace.taking(LEFT);
    pace.done(10);
    expect(pace.afterWabaId()).toBe('w');
    pace.taking({ isNothing: true, nextWabaId: '' });
    pace.done(10);
    expect(pace.afterWabaId()).toBeNull();
  });
});
