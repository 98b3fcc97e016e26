import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sendAsPlanned } from '../../../bench/driver/pacing.ts';
import { dueAtMs, dueCount } from '../../../bench/driver/schedule.ts';
import type { RunPlan } from '../../../bench/run-plan.ts';

const plan = (over: Partial<RunPlan>): RunPlan => ({
  run: 1,
  body: 'message',
  count: 20,
  ratePerSecond: 100,
  concurrency: 4,
  targets: [],
  ...over,
});

test('what is due is exactly what was planned for now or before', () => {
  const positive = { min: 1, max: 5_000 };
  fc.assert(
    fc.property(
      fc.integer(positive),
      fc.integer(positive),
      fc.double({ min: -10, max: 10_000, noNaN: true }),
      (ratePerSecond, count, sinceStartMs) => {
        const startMs = 1_000_000.25;
        const nowMs = startMs + sinceStartMs;
        const due = dueCount(startMs, ratePerSecond, count, nowMs);
        if (due > 0) expect(dueAtMs(startMs, ratePerSecond, due - 1)).toBeLessThanOrEqual(nowMs);
        if (due < count) expect(dueAtMs(startMs, ratePerSecond, due)).toBeGreaterThan(nowMs);
      },
    ),
  );
});

describe('an open-loop run', () => {
  test('sends at the planned times although nothing is answered', async () => {
    const waiting: (() => void)[] = [];
    const times = await sendAsPlanned(plan({ count: 20, ratePerSecond: 100 }), (_n, done) => {
      waiting.push(() => done(200));
      if (waiting.length === 20) for (const answer of waiting) answer();
    });
    const [first = 0] = times.scheduledMs;
    expect([...times.scheduledMs].map((ms) => Math.round(ms - first))).toEqual(
      Array.from({ length: 20 }, (_, n) => n * 10),
    );
    for (const [n, sentMs] of times.sentMs.entries()) {
      expect(sentMs).toBeGreaterThanOrEqual(times.scheduledMs[n] ?? 0);
    }
    expect([...times.status]).toEqual(Array.from({ length: 20 }, () => 200));
  });
});

describe('a closed-loop run', () => {
  test('has as many requests under way as there are connections, and sends each once', async () => {
    let underWay = 0;
    let most = 0;
    const sent: number[] = [];
    const times = await sendAsPlanned(plan({ ratePerSecond: null, count: 50, concurrency: 4 }), (n, done) => {
      sent.push(n);
      underWay += 1;
      most = Math.max(most, underWay);
      setImmediate(() => {
        underWay -= 1;
        done(n === 3 ? 0 : 200);
      });
    });
    expect(most).toBe(4);
    expect(sent).toEqual(Array.from({ length: 50 }, (_, n) => n));
    expect([times.status[3], times.answeredMs[3], times.status[4]]).toEqual([0, 0, 200]);
  });
});
