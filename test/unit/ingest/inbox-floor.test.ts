import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeInboxFloor } from '../../../src/ingest/intake/inbox-floor.ts';

const LAG_MS = 60_000;

test('begins a minute back, and in between with full looks', () => {
  let nowMs = 0;
  const floor = makeInboxFloor(LAG_MS, () => nowMs);
  const look = (ids: string[]) => {
    const from = floor.from();
    floor.looked({ tookMs: 0, ids, firstDay: null });
    return from;
  };
  expect(look(['1', '2'])).toBe('0');
  nowMs = 5_000;
  expect(look(['3'])).toBe('0');
  nowMs = 65_000;
  expect(look(['3'])).toBe('0');
  expect(look([])).toBe('3');
  expect(look([])).toBe('4');
  nowMs = 75_000;
  expect(look([])).toBe('0');
  expect(look([])).toBe('4');
  floor.reset();
  expect(look([])).toBe('0');
  expect(look([])).toBe('0');
});

test('opens the days before yesterday in full looks only, and while a body of one waits', () => {
  let nowMs = 0;
  const floor = makeInboxFloor(LAG_MS, () => nowMs);
  const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
  expect(floor.fromDay()).toBe('-infinity');
  floor.looked({ tookMs: 0, ids: [], firstDay: null });
  expect(floor.fromDay()).toBe(yesterday);
  nowMs = 10_000;
  expect(floor.fromDay()).toBe('-infinity');
  floor.looked({ tookMs: 0, ids: ['7'], firstDay: '2026-01-10' });
  expect(floor.fromDay()).toBe('2026-01-09');
  floor.looked({ tookMs: 0, ids: [], firstDay: null });
  expect(floor.fromDay()).toBe(yesterday);
  floor.reset();
  expect(floor.fromDay()).toBe('-infinity');
});

test('passes over no body that becomes visible within a minute of its insert, nor one that waits', () => {
  const step = fc.record({
    passesMs: fc.oneof(
      { weight: 20, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
      { weight: 1, arbitrary: fc.constant(LAG_MS + 10_000) },
    ),
    visibleAfterMs: fc.integer({ min: 0, max: LAG_MS - 1 }),
    /** How many of what it finds the batch takes in; none when it fails. */
    takes: fc.integer({ min: 0, max: 5 }),
    isByWaba: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 150, size: 'max' }), (steps) => {
      let nowMs = 0;
      const floor = makeInboxFloor(LAG_MS, () => nowMs);
      let waiting: { id: bigint; visibleMs: number }[] = [];
      steps.forEach(({ passesMs, visibleAfterMs, takes, isByWaba }, index) => {
        waiting.push({ id: BigInt(index + 1), visibleMs: nowMs + visibleAfterMs });
        nowMs += passesMs;
        const visible = waiting.filter(({ visibleMs }) => visibleMs <= nowMs);
        const from = BigInt(floor.from());
        expect(visible.filter(({ id }) => id < from)).toEqual([]);
        floor.looked({
          tookMs: 0,
          ids: isByWaba ? null : visible.map(({ id }) => String(id)),
          firstDay: null,
        });
        const taken = new Set(visible.slice(0, takes));
        waiting = waiting.filter((body) => !taken.has(body));
      });
    }),
  );
});
