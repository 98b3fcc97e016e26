import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeLowWater } from '../../../src/platform/low-water.ts';

const LAG_MS = 60_000;
const REST_MS = 10_000;

function started(lagMs: number) {
  const clock = { nowMs: 0 };
  const rest = { times: 20, leastMs: REST_MS };
  return { clock, water: makeLowWater({ rest, lagMs, now: () => clock.nowMs }) };
}

test('looks begin where the queue ended before the lag, or at the oldest that waits, with full looks in between', () => {
  const { clock, water } = started(LAG_MS);
  const look = (nowMs: number, seen: { end: number; oldest: number | null }) => {
    clock.nowMs = nowMs;
    const from = water.from();
    water.looked({ tookMs: 0, seen });
    return from;
  };
  expect(look(0, { end: 3, oldest: 1 })).toBe(null);
  expect(look(5_000, { end: 5, oldest: null })).toBe(null);
  expect(look(66_000, { end: 9, oldest: null })).toBe(null);
  expect(look(66_001, { end: 9, oldest: 4 })).toBe(5);
  expect(look(66_002, { end: 9, oldest: null })).toBe(4);
  expect(look(76_000, { end: 9, oldest: null }), 'a full look').toBe(null);
  expect(look(76_001, { end: 9, oldest: null })).toBe(5);
});

test('without a lag the first look counts', () => {
  const { water } = started(0);
  water.looked({ tookMs: 0, seen: { end: 7, oldest: null } });
  expect(water.from()).toBe(7);
});

test('a full look rests for as long as it took, within bounds', () => {
  for (const [tookMs, restMs] of [
    [10, 1_000],
    [1_000, 20_000],
    [9_000, 60_000],
  ] as const) {
    let nowMs = tookMs;
    const rest = { times: 20, leastMs: 1_000, longestMs: 60_000 };
    const water = makeLowWater({ rest, now: () => nowMs });
    water.looked({ tookMs, seen: { end: 7, oldest: null } });
    nowMs = tookMs + restMs - 1;
    expect(water.from()).toBe(7);
    nowMs += 1;
    expect(water.from()).toBe(null);
  }
});

test('a look that was under way when a full one became due does not pass for it', () => {
  const { clock, water } = started(0);
  water.looked({ tookMs: 0, seen: { end: 7, oldest: null } });
  clock.nowMs = REST_MS + 5;
  water.looked({ tookMs: 10, seen: { end: 8, oldest: null } });
  expect(water.from()).toBe(null);
});

test('a database that was restored to an earlier moment is looked at from the beginning', () => {
  const { clock, water } = started(0);
  water.looked({ tookMs: 0, seen: { end: 70, oldest: null } });
  clock.nowMs = 1;
  water.looked({ tookMs: 0, seen: { end: 7, oldest: null } });
  expect(water.from()).toBe(null);
  water.looked({ tookMs: 0, seen: { end: 7, oldest: null } });
  expect(water.from()).toBe(7);
});

test('a look that a later one overtook does not pass over the oldest that the later one found', () => {
  const { clock, water } = started(LAG_MS);
  water.looked({ tookMs: 0, seen: { end: 70, oldest: null } });
  clock.nowMs = 2 * LAG_MS;
  water.looked({ tookMs: 1, seen: { end: 80, oldest: 50 } });
  water.looked({ tookMs: 3, seen: { end: 75, oldest: null } });
  clock.nowMs = 2 * LAG_MS + 1;
  expect(water.from()).toBe(50);
});

type Row = { id: number; visibleMs: number; isLate: boolean; passedOverMs: number | null };
type Begun = { atMs: number; from: number | null; found: Row[] };

const step = fc.record({
  passesMs: fc.oneof(
    { weight: 20, arbitrary: fc.integer({ min: 1, max: 3_000 }) },
    { weight: 1, arbitrary: fc.constant(LAG_MS + REST_MS) },
  ),
  visibleAfterMs: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: LAG_MS - 1 }) },
    { weight: 1, arbitrary: fc.integer({ min: LAG_MS, max: 3 * LAG_MS }) },
  ),
  begins: fc.boolean(),
  /** Which of the looks under way ends; null: none. */
  ends: fc.option(fc.nat(3), { freq: 4 }),
  /** How many of what it found are taken out of the queue; none when that fails. */
  takes: fc.integer({ min: 0, max: 5 }),
  /** Unless it is a full look. */
  leavesSomeOut: fc.boolean(),
  putsBack: fc.oneof(
    { weight: 15, arbitrary: fc.constant(false) },
    { weight: 1, arbitrary: fc.constant(true) },
  ),
});

test('no row that waits is passed over by looks side by side; one visible after the lag for no longer than a full look rests', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 150, size: 'max' }), (steps) => {
      const clock = { nowMs: 0 };
      const rest = { times: 0, leastMs: REST_MS };
      const water = makeLowWater({ rest, lagMs: LAG_MS, now: () => clock.nowMs });
      const waiting = new Set<Row>();
      const gone: Row[] = [];
      let open: Begun[] = [];
      steps.forEach(({ passesMs, visibleAfterMs, begins, ends, takes, leavesSomeOut, putsBack }, index) => {
        const isLate = visibleAfterMs >= LAG_MS;
        const visibleMs = clock.nowMs + visibleAfterMs;
        waiting.add({ id: index + 1, visibleMs, isLate, passedOverMs: null });
        clock.nowMs += passesMs;
        const back = putsBack ? gone.shift() : undefined;
        if (back !== undefined) {
          waiting.add({ ...back, passedOverMs: null });
          water.reset();
        }
        if (begins) {
          const from = water.from();
          const visible = [...waiting]
            .filter((row) => row.visibleMs <= clock.nowMs)
            .sort((one, other) => one.id - other.id);
          for (const row of visible.filter(({ id }) => id < (from ?? 0))) {
            expect(row.isLate).toBe(true);
            row.passedOverMs ??= clock.nowMs;
            expect(clock.nowMs - row.passedOverMs).toBeLessThan(REST_MS);
          }
          open.push({ atMs: clock.nowMs, from, found: visible.filter(({ id }) => id >= (from ?? 0)) });
        }
        const ended = ends === null ? undefined : open[ends % Math.max(1, open.length)];
        if (ended === undefined) return;
        open = open.filter((look) => look !== ended);
        const isPartial = leavesSomeOut && ended.from !== null;
        const seen = { end: index + 2, oldest: ended.found[0]?.id ?? null };
        water.looked({ tookMs: clock.nowMs - ended.atMs, seen: isPartial ? null : seen });
        for (const row of ended.found.slice(0, takes)) if (waiting.delete(row)) gone.push(row);
      });
    }),
    { numRuns: 500 },
  );
});
