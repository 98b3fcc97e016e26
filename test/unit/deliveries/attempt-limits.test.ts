import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  AttemptSlots,
  EndpointLimiter,
  FIRST_LIMIT,
  type UnderWay,
} from '../../../src/engine/deliveries/loop/attempt-limits.ts';
import type { EndpointLimits } from '../../../src/engine/endpoint/endpoint-settings.ts';
import type { SendResult } from '../../../src/platform/sender/http-sender.ts';
import { failure, response } from './send-results.ts';

const ID = '7';

function limiterAt(limits: Partial<EndpointLimits> = {}) {
  let nowMs = 0;
  const limiter = new EndpointLimiter(() => nowMs);
  const allow = ({ maxInFlight = null, ratePerSecond = null, workflows = null }: Partial<EndpointLimits>) =>
    limiter.allow(ID, { maxInFlight, ratePerSecond, workflows });
  if (Object.keys(limits).length > 0) allow(limits);
  return {
    limiter,
    allow,
    wait: (ms: number) => {
      nowMs += ms;
    },
    free: () => limiter.free(ID),
    /** Starts and ends as many attempts, one after another. */
    attempt: (result: SendResult | null, times = 1) => {
      for (let n = 0; n < times; n += 1) {
        limiter.end(limiter.start(ID), result);
      }
    },
  };
}

describe('how many attempts an endpoint may have under way', () => {
  test('grows by one per success, up to 100', () => {
    const { free, attempt } = limiterAt();
    expect(free()).toBe(FIRST_LIMIT);
    attempt(response(204));
    expect(free()).toBe(FIRST_LIMIT + 1);
    attempt(response(200), 500);
    expect(free()).toBe(100);
  });

  test.each([
    ['a time-out', failure('timeout')],
    ['429', response(429)],
    ['503', response(503)],
  ])('halves at %s, and one is always left', (_name, result) => {
    const { free, attempt } = limiterAt();
    attempt(result);
    expect(free()).toBe(FIRST_LIMIT / 2);
    attempt(result, 10);
    expect(free()).toBe(1);
  });

  test.each([
    ['500', response(500)],
    ['404', response(404)],
    ['a refused connection', failure('refused')],
    ['an attempt that was not sent', null],
  ])('stays as it is at %s, which says nothing about load', (_name, result) => {
    const { free, attempt } = limiterAt();
    attempt(result, 3);
    expect(free()).toBe(FIRST_LIMIT);
  });

  test('is at most 10 while answers take over 2 seconds, and grows again when they are quick', () => {
    const { free, attempt } = limiterAt();
    attempt(response(200), 50);
    expect(free()).toBe(60);
    attempt(response(200, { totalMs: 5_000 }), 20);
    expect(free()).toBe(10);
    attempt(response(200, { totalMs: 10 }), 20);
    expect(free()).toBeGreaterThan(60);
  });

  test('is never more than the tenant allows, who may also allow more', () => {
    const { free, allow, attempt } = limiterAt({ maxInFlight: 3 });
    expect(free()).toBe(3);
    allow({ maxInFlight: 150 });
    attempt(response(200), 300);
    expect(free()).toBe(150);
    allow({ maxInFlight: 3 });
    expect(free()).toBe(3);
  });

  test('is counted per endpoint', () => {
    const { limiter, free } = limiterAt();
    for (let n = 0; n < FIRST_LIMIT; n += 1) limiter.start(ID);
    expect(free()).toBe(0);
    expect(limiter.free('8')).toBe(FIRST_LIMIT);
  });

  test('begins at one when the endpoint comes back, and grows from there', () => {
    const { limiter, free, attempt } = limiterAt();
    attempt(response(200), 80);
    limiter.restart(ID);
    expect(free()).toBe(1);
    attempt(response(200), 5);
    expect(free()).toBe(6);
  });
});

describe('what a tenant allows at once', () => {
  test.each([
    { maxInFlight: 7, processes: 3 },
    { maxInFlight: 16, processes: 8 },
    { maxInFlight: 4, processes: 8 },
    { maxInFlight: 1, processes: 20 },
  ])(
    'is divided among the processes to the last one: $maxInFlight among $processes',
    ({ maxInFlight, processes }) => {
      const shares = Array.from({ length: processes }, (_, rank) => {
        const { limiter, free, attempt } = limiterAt({ maxInFlight });
        attempt(response(200), 50);
        limiter.shareWith(processes, rank);
        return free();
      });
      expect(shares.reduce((sum, share) => sum + share, 0)).toBe(maxInFlight);
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
    },
  );

  test('is not always with the same process', () => {
    const limiter = new EndpointLimiter(() => 0);
    const endpoints = ['1', '2', '3', '4'];
    for (const id of endpoints) limiter.allow(id, { maxInFlight: 1, ratePerSecond: null, workflows: null });
    limiter.shareWith(4, 2);
    expect(endpoints.filter((id) => limiter.free(id) === 1)).toHaveLength(1);
  });

  test('is not limited any more once the tenant takes the limit away', () => {
    const { free, allow } = limiterAt({ maxInFlight: 2, ratePerSecond: 1 });
    expect(free()).toBe(1);
    allow({});
    expect(free()).toBe(FIRST_LIMIT);
  });
});

describe('an endpoint that is not used', () => {
  test('is forgotten after a minute, with nothing under way', () => {
    const { limiter, free, attempt, wait } = limiterAt();
    attempt(response(200), 20);
    const underWay = limiter.start(ID);
    wait(120_000);
    limiter.forgetUnused();
    expect(free()).toBe(FIRST_LIMIT - 1);
    limiter.end(underWay, response(200));
    expect(free()).toBe(31);
    limiter.forgetUnused();
    expect(free()).toBe(FIRST_LIMIT);
  });

  test('keeps what its tenant allows, and what it spent of it', () => {
    const { limiter, free, wait } = limiterAt({ ratePerSecond: 1, maxInFlight: 2 });
    for (let n = 0; n < 100; n += 1) limiter.end(limiter.start(ID), response(200));
    wait(61_000);
    limiter.forgetUnused();
    expect(free()).toBe(0);
    wait(3_600_000);
    limiter.forgetUnused();
    expect(free()).toBe(1);
    wait(5_000);
    limiter.forgetUnused();
    expect(free()).toBe(1);
  });
});

describe('an endpoint that begins to hang', () => {
  test('gets no more than a slow one before the first attempt has ended, and its speed back with the answer', () => {
    const { limiter, free, attempt, wait } = limiterAt();
    attempt(response(200), 200);
    const hanging = Array.from({ length: 4 }, () => limiter.start(ID));
    wait(2_000);
    expect(free()).toBe(96);
    wait(1);
    expect(free()).toBe(6);
    for (const one of hanging) limiter.end(one, response(200));
    expect(free()).toBe(100);
  });
});

describe('the rate limit', () => {
  test('is divided among the processes that share it', () => {
    const { limiter, free, wait } = limiterAt({ ratePerSecond: 20 });
    free();
    limiter.shareWith(4);
    wait(10_000);
    expect(free()).toBe(5);
  });

  test('lets one through in time however small the share is', () => {
    const { limiter, free, attempt, wait } = limiterAt({ ratePerSecond: 1 });
    limiter.shareWith(100);
    expect(free()).toBe(1);
    attempt(response(200));
    expect(free()).toBe(0);
    wait(100_001);
    expect(free()).toBe(1);
  });

  test('that is lifted leaves no debt', () => {
    const { limiter, free, allow } = limiterAt({ ratePerSecond: 5 });
    for (let n = 0; n < 1_000; n += 1) limiter.end(limiter.start(ID), response(500));
    expect(free()).toBe(0);
    allow({});
    expect(free()).toBe(FIRST_LIMIT);
  });

  test('property: over any time, at most a second’s worth beyond the rate is started', () => {
    const steps = fc.array(fc.record({ waitMs: fc.nat(3_000), wanted: fc.nat(60) }), { maxLength: 60 });
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 50 }), (plan, ratePerSecond) => {
        const { free, wait, attempt } = limiterAt({ ratePerSecond });
        let [started, elapsedMs] = [0, 0];
        for (const { waitMs, wanted } of plan) {
          wait(waitMs);
          elapsedMs += waitMs;
          const now = Math.min(wanted, free());
          attempt(response(200), now);
          started += now;
          expect(started).toBeLessThanOrEqual(ratePerSecond + (elapsedMs / 1_000) * ratePerSecond + 1e-6);
        }
      }),
    );
  });
});

test('property: whatever the answers are, free slots are a whole number from 0 to the limit, and never more are under way', () => {
  const results = fc.constantFrom(
    response(200),
    response(200, { totalMs: 9_000 }),
    response(503),
    response(410),
    failure('timeout'),
    failure('reset'),
    null,
  );
  const steps = fc.array(
    fc.oneof(fc.record({ start: fc.nat(120) }), fc.record({ end: results }), fc.constant('restart' as const)),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(steps, fc.option(fc.integer({ min: 1, max: 100 })), (plan, maxInFlight) => {
      const { limiter, free } = limiterAt({ maxInFlight });
      const underWay: UnderWay[] = [];
      for (const step of plan) {
        if (step === 'restart') limiter.restart(ID);
        else if ('start' in step) {
          const now = Math.min(step.start, free());
          for (let n = 0; n < now; n += 1) underWay.push(limiter.start(ID));
        } else {
          const ended = underWay.shift();
          if (ended !== undefined) limiter.end(ended, step.end);
        }
        expect(Number.isInteger(free()) && free() >= 0).toBe(true);
        expect(underWay.length).toBeLessThanOrEqual(maxInFlight ?? 100);
        if (underWay.length === 0) expect(free()).toBeGreaterThan(0);
      }
    }),
  );
});

function slotsAt() {
  let nowMs = 0;
  const slots = new AttemptSlots(undefined, () => nowMs);
  const take = (count: number) =>
    Array.from({ length: count }, () => {
      const attempt = { endpointId: '7', startMs: nowMs };
      slots.take(attempt);
      return attempt;
    });
  const wait = (ms: number) => {
    nowMs += ms;
  };
  return { slots, take, wait };
}

test('512 attempts are made side by side', () => {
  const { slots, take } = slotsAt();
  const attempts = take(512);
  expect(slots.free()).toBe(0);
  for (const attempt of attempts.slice(0, 12)) slots.release(attempt);
  expect(slots.free()).toBe(12);
});

test('those that wait long for their answer leave their slots to others, up to 4,096 in all', () => {
  const { slots, take, wait } = slotsAt();
  for (let group = 1; group <= 8; group += 1) {
    take(512);
    expect(slots.free()).toBe(0);
    wait(500);
    expect(slots.free()).toBe(group < 8 ? 512 : 0);
  }
  expect(slots.unfinished()).toBe(4_096);
});

test('what is answered counts until it is recorded, however long that takes', () => {
  const { slots, take, wait } = slotsAt();
  for (const attempt of take(512)) slots.responded(attempt);
  wait(60_000);
  expect(slots.free()).toBe(0);
});

test('no more is claimed while many late answers are not recorded yet', () => {
  const { slots, take, wait } = slotsAt();
  const late = take(512);
  wait(500);
  expect(slots.free()).toBe(512);
  late.push(...take(512));
  wait(500);
  expect(slots.free()).toBe(512);
  for (const attempt of late) slots.responded(attempt);
  expect(slots.free()).toBe(0);
  for (const attempt of late) slots.release(attempt);
  expect(slots.free()).toBe(512);
  expect(slots.unfinished()).toBe(0);
});

test('results that others keep from being recorded leave their slots to attempts, up to 4,096 of them', () => {
  const { slots, take, wait } = slotsAt();
  const held = () => {
    const attempts = take(512);
    for (const attempt of attempts) slots.responded(attempt);
    expect(slots.free()).toBe(0);
    for (const attempt of attempts) slots.hold(attempt);
    return attempts;
  };
  const attempts = Array.from({ length: 8 }, held).flat();
  expect([slots.free(), slots.unfinished()]).toEqual([512, 4_096]);
  const beyond = held();
  expect([slots.free(), slots.unfinished()]).toEqual([0, 4_608]);
  wait(60_000);
  expect(slots.free()).toBe(0);
  for (const attempt of beyond) slots.release(attempt);
  expect(slots.free()).toBe(512);
  for (const attempt of attempts) slots.release(attempt);
  expect([slots.free(), slots.unfinished()]).toEqual([512, 0]);
});

test('an endpoint with ten results that others keep from being recorded gets nothing until one of them is', () => {
  const { limiter, free, wait } = limiterAt({});
  const attempts = Array.from({ length: 10 }, () => limiter.start(ID));
  for (const attempt of attempts) limiter.end(attempt, response(200));
  for (const attempt of attempts.slice(1)) limiter.hold(attempt);
  expect(free()).toBeGreaterThan(0);
  const [last] = attempts;
  if (last === undefined) throw new Error('nothing was started');
  limiter.hold(last);
  expect([free(), limiter.waitMs(ID)]).toEqual([0, 0]);
  wait(3_600_000);
  limiter.forgetUnused();
  expect(free()).toBe(0);
  limiter.release(last);
  expect(free()).toBeGreaterThan(0);
});
