import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BREAKER, isRepetition, makeEndpointHealth } from '../../../src/engine/deliveries/breaker.ts';
import { DEFAULT_RETRY_SCHEDULE_MS } from '../../../src/platform/retry-schedule.ts';

const MINUTE_MS = 60_000;
const WINDOW_MS = BREAKER.minutes * MINUTE_MS;

function healthAt(startMs = 1_790_000_040_000) {
  let nowMs = startMs;
  let deliveries = 0;
  const health = makeEndpointHealth(() => nowMs);
  /** The first attempt of one more delivery. */
  const first = () => {
    deliveries += 1;
    return { deliveryId: `delivery-${deliveries}`, isRepetition: false, durationMs: 10 };
  };
  return {
    health,
    first,
    wait: (ms: number) => {
      nowMs += ms;
    },
    /** Records as many; returns at which of them the endpoint was taken for down. */
    record: (ok: boolean, times: number, endpointId = '7') => {
      const down: number[] = [];
      for (let n = 1; n <= times; n += 1) if (health.record(endpointId, { ...first(), ok })) down.push(n);
      return down;
    },
  };
}

describe('an endpoint is taken for down', () => {
  test('at the tenth failure, not before', () => {
    expect(healthAt().record(false, 10)).toEqual([10]);
  });

  test('at 70 percent failures, and not below', () => {
    const below = healthAt();
    below.record(true, 5);
    expect(below.record(false, 11)).toEqual([]);
    expect(below.record(false, 1)).toEqual([1]);
  });

  test('at the fifth time-out in a row, however well it did before', () => {
    const { health, first, record } = healthAt();
    record(true, 1_000);
    const timeOut = (times: number) =>
      Array.from({ length: times }, () => health.record('7', { ...first(), ok: false, timedOut: true }));
    expect(timeOut(4)).toEqual([false, false, false, false]);
    expect(record(false, 1)).toEqual([]);
    expect(timeOut(5)).toEqual([false, false, false, false, true]);
  });

  test('at the thirtieth failure in a row, however well it did before', () => {
    const { record } = healthAt();
    record(true, 3_000);
    record(false, 29);
    record(true, 1);
    expect(record(false, 30)).toEqual([30]);
    expect(record(false, 9)).toEqual([]);
  });

  test('never by one delivery, however often it hangs or fails, nor by nine', () => {
    const { health, first } = healthAt();
    const bad = Array.from({ length: 9 }, first);
    const attempts = bad.flatMap((one) =>
      Array.from({ length: 20 }, (_, n) => ({ ...one, isRepetition: n > 0 })),
    );
    const verdicts = attempts.map((one) => health.record('7', { ...one, ok: false }));
    expect(verdicts).not.toContain(true);
    for (const one of attempts.slice(0, 20)) {
      expect(health.record('7', { ...one, isRepetition: true, ok: false, timedOut: true })).toBe(false);
    }
    expect(health.drain()).toMatchObject([{ failures: 200, failedDeliveries: 9 }]);
  });

  test('never by a success', () => {
    const { record } = healthAt();
    record(false, 9);
    record(true, 3);
    expect(record(true, 100)).toEqual([]);
  });

  test('by what happened within five minutes only', () => {
    const { record, wait } = healthAt();
    record(false, 9);
    wait(WINDOW_MS);
    expect(record(false, 9)).toEqual([]);
    wait(WINDOW_MS - MINUTE_MS);
    expect(record(false, 1)).toEqual([1]);
  });

  test('on its own account, not on that of others', () => {
    const { record } = healthAt();
    record(false, 9, '1');
    expect(record(false, 9, '2')).toEqual([]);
  });

  test('again only after as many failures as the first time', () => {
    expect(healthAt().record(false, 30)).toEqual([10, 20, 30]);
  });
});

test('property: it is down exactly when the failures since it last was are at least 10 and 70 percent, or 30 in a row', () => {
  const attempts = fc.array(
    fc.record({
      waitMinutes: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, fc.nat(6)),
      ok: fc.boolean(),
    }),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(attempts, fc.nat(9), (plan, bias) => {
      const { health, first, wait } = healthAt();
      let seen: { minute: number; ok: boolean }[] = [];
      let minute = 0;
      for (const [index, { waitMinutes, ok: even }] of plan.entries()) {
        wait(waitMinutes * MINUTE_MS);
        minute += waitMinutes;
        const ok = even && index % 10 >= bias;
        seen = [...seen.filter((one) => one.minute > minute - BREAKER.minutes), { minute, ok }];
        const failures = seen.filter((one) => !one.ok).length;
        const inARow = seen.length - 1 - seen.findLastIndex((one) => one.ok);
        const expected = !ok && ((failures >= 10 && failures >= 0.7 * seen.length) || inARow >= 30);
        expect(health.record('7', { ...first(), ok })).toBe(expected);
        if (expected) seen = [];
      }
    }),
  );
});

test('what was counted is handed out once, per endpoint', () => {
  const { health, record, wait } = healthAt();
  record(true, 3);
  record(false, 2, '8');
  wait(MINUTE_MS);
  record(false, 1);
  expect(health.drain()).toEqual([
    { endpointId: '7', successes: 3, failures: 1, failedDeliveries: 1, totalMs: 40 },
    { endpointId: '8', successes: 0, failures: 2, failedDeliveries: 2, totalMs: 20 },
  ]);
  expect(health.drain()).toEqual([]);
});

describe('a retry', () => {
  test('of the default schedule says something new once the waits since the last that did are five minutes', () => {
    const retries = Array.from({ length: 10 }, (_, n) => isRepetition(DEFAULT_RETRY_SCHEDULE_MS, n));
    expect(retries).toEqual([false, true, true, true, false, false, false, false, false, false]);
  });

  test('property: one of each five minutes does, whatever the schedule', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(2 * WINDOW_MS), { maxLength: 30 }), (schedule) => {
        let sinceMs = 0;
        for (const [index, waitMs] of schedule.entries()) {
          sinceMs += waitMs;
          const isNew = sinceMs >= WINDOW_MS;
          expect(isRepetition(schedule, index + 1)).toBe(!isNew);
          if (isNew) sinceMs = 0;
        }
      }),
    );
  });
});
