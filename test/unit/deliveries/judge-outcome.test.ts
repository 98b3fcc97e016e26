import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { probeDelayMs } from '../../../src/engine/deliveries/breaker.ts';
import { type AttemptMade, isTrouble, judgeOutcome } from '../../../src/engine/deliveries/judge-outcome.ts';
import {
  DEFAULT_RETRY_SCHEDULE_MS,
  MAX_RETRY_DELAY_MS,
  MIN_RETRY_DELAY_MS,
  nextDelayMs,
} from '../../../src/platform/retry-schedule.ts';
import type { SendErrorClass } from '../../../src/platform/sender/send-error.ts';
import { failure, response } from './send-results.ts';

const DAY_MS = 86_400_000;
const LIMITS = { perEndpoint: 20, overall: 200, takeStart: () => true };
const SCHEDULE = [5_000, 30_000, 120_000];

function made(changes: Partial<AttemptMade> = {}): AttemptMade {
  const counts = { eventType: 'message', attempt: 1, probes: 0, retryScheduleMs: SCHEDULE };
  const known = { isProbe: false, hasRun: false, isCalm: false, scheduledInMs: null };
  return { ...counts, ...known, result: response(500), ...changes };
}

function endpoint(mode = 'open', own = 0, ofTenant = own, overall = ofTenant, perEndpoint = 20) {
  const open = { freeRuns: perEndpoint - own, openRunsOfTenant: ofTenant, openRunsOverall: overall };
  return { endpointId: '7', mode, probeFailures: 0, isInTrouble: false, ...open };
}

const failing = fc.oneof(
  fc
    .tuple(
      fc.integer({ min: 100, max: 599 }).filter((status) => (status < 200 || status > 299) && status !== 410),
      fc.option(fc.nat(DAY_MS)),
    )
    .map(([status, retryAfterMs]) => response(status, { retryAfterMs })),
  fc.constantFrom<SendErrorClass>('dns', 'refused', 'reset', 'tls', 'timeout', 'closed').map(failure),
);
const schedules = fc.array(fc.integer({ min: 0, max: 2 * DAY_MS }), { maxLength: 12 });
const attempts = fc
  .tuple(fc.integer({ min: 1, max: 40 }), fc.nat(40))
  .map(([attempt, probes]) => ({ attempt, probes: Math.min(probes, attempt - 1) }));

describe('a response', () => {
  test.each([200, 201, 204, 299])('%i is success in every mode, also of the test event', (status) => {
    for (const mode of ['open', 'down', 'probing', 'paused', 'disabled']) {
      for (const eventType of ['message', 'test']) {
        const outcome = judgeOutcome(made({ eventType, result: response(status) }), endpoint(mode), LIMITS);
        expect(outcome).toEqual({ state: 'delivered', statusCode: status, attempt: 1 });
      }
    }
  });

  test('410 keeps the delivery: it is the endpoint that ends', () => {
    const outcome = judgeOutcome(made({ attempt: 4, result: response(410) }), endpoint(), LIMITS);
    expect(outcome).toMatchObject({ state: 'deferred', attempt: 4 });
  });

  test('that is no success ends the test event at once: nobody waits for its retry', () => {
    for (const result of [response(500), response(410), failure('dns')]) {
      const outcome = judgeOutcome(made({ eventType: 'test', result }), endpoint(), LIMITS);
      expect(outcome).toMatchObject({ state: 'failed', attempt: 1 });
    }
  });
});

test('time-outs, lost connections, 5xx and 429 say that the server is in trouble, and nothing else does', () => {
  const trouble = [
    failure('timeout'),
    failure('refused'),
    ...[408, 429, 500, 503, 599].map((n) => response(n)),
  ];
  const refusals = [301, 400, 401, 404, 422].map((status) => response(status));
  expect(trouble.map(isTrouble)).toEqual(trouble.map(() => true));
  expect(refusals.map(isTrouble)).toEqual(refusals.map(() => false));
});

describe('a failure of an endpoint that takes deliveries', () => {
  test('is final when the schedule has ended, and not before', () => {
    const states = [1, 2, 3, 4].map((attempt) => judgeOutcome(made({ attempt }), endpoint(), LIMITS).state);
    expect(states).toEqual(['retrying', 'retrying', 'retrying', 'failed']);
  });

  test('counts only the attempts that used up a retry', () => {
    const outcome = judgeOutcome(made({ attempt: 14, probes: 13 }), endpoint(), LIMITS);
    expect(outcome).toMatchObject({ state: 'retrying', attempt: 14, isExtra: false });
    expect(outcome).toMatchObject({ delayMs: expect.closeTo(5_000, -3.5) });
  });

  test('of a retry that was brought forward uses up none: the delivery waits for its former time', () => {
    const early = (result: AttemptMade['result']) =>
      judgeOutcome(made({ attempt: 4, scheduledInMs: 3_600_000, result }), endpoint(), LIMITS);
    const waits = { state: 'retrying', attempt: 4, isExtra: true };
    expect(early(response(503))).toMatchObject({ ...waits, delayMs: 3_600_000 });
    expect(early(response(429, { retryAfterMs: 7_200_000 }))).toMatchObject({ ...waits, delayMs: 7_200_000 });
    expect(early(response(429, { retryAfterMs: 1_000 }))).toMatchObject({ ...waits, delayMs: 3_600_000 });
  });

  /** The run that shows the retry from its second failure on. */
  const runOf = (now: ReturnType<typeof endpoint>, limits = LIMITS, hasRun = false) => {
    const outcome = judgeOutcome(made({ attempt: 2, hasRun }), now, limits);
    if (outcome.state !== 'retrying') throw new Error(`it is ${outcome.state}`);
    return outcome.run;
  };

  test('in busy traffic gets no run when it is the first and is retried within half a minute', () => {
    expect(judgeOutcome(made(), endpoint(), LIMITS)).toMatchObject({ run: null });
    expect(judgeOutcome(made({ hasRun: true }), endpoint(), LIMITS)).toMatchObject({ run: 'extra' });
    expect(judgeOutcome(made({ isCalm: true }), endpoint(), LIMITS)).toMatchObject({ run: 'room' });
    const slow = made({ retryScheduleMs: [60_000] });
    expect(judgeOutcome(slow, endpoint(), LIMITS)).toMatchObject({ run: 'room' });
  });

  test('gets a run while its endpoint is probed, paused or disabled too', () => {
    for (const mode of ['down', 'probing', 'paused', 'disabled'])
      expect(judgeOutcome(made(), endpoint(mode), LIMITS)).toMatchObject({ state: 'deferred', run: 'room' });
  });

  test('gets no run when its endpoint has enough of them open', () => {
    expect(runOf(endpoint('open', 19))).toBe('room');
    expect(runOf(endpoint('open', 20))).toBeNull();
    expect(runOf(endpoint('open', 20, 20, 20, 21))).toBe('room');
    expect(runOf(endpoint('open', 0, 0, 0, 0))).toBeNull();
  });

  test('gets no run when its tenant has as many open as are still free for others', () => {
    expect(runOf(endpoint('open', 0, 99))).toBe('room');
    expect(runOf(endpoint('open', 0, 100))).toBeNull();
    expect(runOf(endpoint('open', 0, 0, 199))).toBe('room');
    expect(runOf(endpoint('open', 0, 1, 199))).toBeNull();
    expect(runOf(endpoint('open', 0, 0, 200))).toBeNull();
  });

  test('uses a start up, unless its run was started before, which stays, room or not', () => {
    let left = 1;
    const limits = { ...LIMITS, takeStart: () => left-- > 0 };
    expect(runOf(endpoint(), limits, true)).toBe('extra');
    expect(runOf(endpoint(), limits)).toBe('room');
    expect(runOf(endpoint(), limits)).toBeNull();
    expect(runOf(endpoint(), limits, true)).toBe('extra');
  });

  test('uses no start up where there is no room', () => {
    const takeStart = () => {
      throw new Error('a start was used up');
    };
    expect(runOf(endpoint('open', 20), { ...LIMITS, takeStart })).toBeNull();
  });
});

describe('properties', () => {
  test('the next attempt never comes before Retry-After, nor within a second, nor after a day', () => {
    fc.assert(
      fc.property(failing, attempts, schedules, fc.boolean(), (result, counts, retryScheduleMs, isProbe) => {
        const mode = isProbe ? 'probing' : 'open';
        const outcome = judgeOutcome(
          made({ ...counts, result, retryScheduleMs, isProbe }),
          endpoint(mode),
          LIMITS,
        );
        if (!('delayMs' in outcome)) return;
        const retryAfterMs = result.outcome === 'response' ? (result.retryAfterMs ?? 0) : 0;
        expect(outcome.delayMs).toBeGreaterThanOrEqual(retryAfterMs);
        expect(outcome.delayMs).toBeGreaterThanOrEqual(1_000);
        expect(outcome.delayMs).toBeLessThanOrEqual(DAY_MS);
      }),
    );
  });

  test('a failure while the endpoint is probed, paused, disabled or just taken for down uses up no retry', () => {
    const modes = fc.constantFrom('probing', 'paused', 'disabled', 'down');
    fc.assert(
      fc.property(
        failing,
        attempts,
        schedules,
        modes,
        fc.boolean(),
        (result, counts, schedule, mode, isProbe) => {
          const now = endpoint(mode);
          const outcome = judgeOutcome(
            made({ ...counts, result, retryScheduleMs: schedule, isProbe }),
            now,
            LIMITS,
          );
          const asksForTime = result.outcome === 'response' && result.retryAfterMs !== null;
          const expected =
            isProbe && mode === 'probing' && asksForTime
              ? { state: 'retrying', isExtra: true }
              : { state: 'deferred' };
          expect(outcome).toMatchObject({ ...expected, attempt: counts.attempt });
          expect(now.freeRuns).toBe(19);
        },
      ),
    );
  });

  test('a group of failures opens as many runs as there is room and starts for, never one more', () => {
    const group = fc.array(fc.tuple(failing, attempts), { maxLength: 60 });
    const limits = fc.record({ perEndpoint: fc.nat(30), overall: fc.nat(60), starts: fc.nat(30) });
    const open = fc.record({ own: fc.nat(40), ofTenant: fc.nat(40), ofOthers: fc.nat(40) });
    fc.assert(
      fc.property(group, limits, open, (failures, { starts, ...limit }, { own, ofTenant, ofOthers }) => {
        const overall = own + ofTenant + ofOthers;
        const now = endpoint('open', own, own + ofTenant, overall, limit.perEndpoint);
        const free = limit.overall - overall;
        // Each one more of the tenant is one less that is free.
        const fair = Math.ceil((free - own - ofTenant) / 2);
        const roomBefore = Math.max(0, Math.min(limit.perEndpoint - own, fair, starts));
        let left = starts;
        const outcomes = failures.map(([result, counts]) =>
          judgeOutcome(made({ ...counts, attempt: counts.attempt + 1, result }), now, {
            ...limit,
            takeStart: () => left-- > 0,
          }),
        );
        const retrying = outcomes.filter((outcome) => outcome.state === 'retrying');
        const opened = retrying.filter(({ run }) => run === 'room').length;
        expect(opened).toBe(Math.min(roomBefore, retrying.length));
        expect(now.freeRuns).toBe(limit.perEndpoint - own - opened);
        expect(now.openRunsOfTenant).toBe(own + ofTenant + opened);
        expect(now.openRunsOverall).toBe(own + ofTenant + ofOthers + opened);
      }),
    );
  });

  test('a tenant with any number of failures leaves room for one that has none', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 400 }), (overall, failures) => {
        const limits = { perEndpoint: 20, overall, takeStart: () => true };
        const busy = endpoint('open', 0, 0, 0, 1_000);
        for (let n = 0; n < failures; n += 1) judgeOutcome(made({ attempt: 2 }), busy, limits);
        const other = endpoint('open', 0, 0, busy.openRunsOverall);
        expect(judgeOutcome(made({ attempt: 2 }), other, limits)).toMatchObject({
          run: overall > 1 ? 'room' : null,
        });
      }),
    );
  });

  test('probes come at the pace of the schedule, and every five minutes at the latest', () => {
    fc.assert(
      fc.property(
        schedules,
        fc.nat(1_000),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (schedule, failures, dice) => {
          const delayMs = probeDelayMs(schedule, failures, () => dice);
          const step = schedule[Math.min(failures, schedule.length - 1)] ?? Number.POSITIVE_INFINITY;
          expect(delayMs).toBeGreaterThanOrEqual(Math.min(1_000, step));
          expect(delayMs).toBeLessThanOrEqual(Math.min(300_000, Math.max(1_000, Math.ceil(step * 1.2))));
        },
      ),
    );
  });
});

const schedule = DEFAULT_RETRY_SCHEDULE_MS;
const middle = () => 0.5;

describe('nextDelayMs', () => {
  test('the default schedule is the documented one, in seconds', () => {
    const waits = Array.from({ length: 12 }, (_, attemptsMade) =>
      nextDelayMs({ schedule, attemptsMade, retryAfterMs: null, random: middle }),
    );
    const seconds = waits.map((ms) => (ms === null ? null : ms / 1_000));
    expect(seconds).toEqual([0, 5, 30, 120, 600, 1800, 7200, 21600, 43200, 86400, 86400, null]);
  });

  test('a longer Retry-After wins, a shorter one does not', () => {
    const input = { schedule, attemptsMade: 1, random: middle };
    expect(nextDelayMs({ ...input, retryAfterMs: 60_000 })).toBe(60_000);
    expect(nextDelayMs({ ...input, retryAfterMs: 1_000 })).toBe(5_000);
  });

  test('Retry-After does not prolong an exhausted schedule', () => {
    expect(nextDelayMs({ schedule, attemptsMade: 11, retryAfterMs: 60_000, random: middle })).toBeNull();
  });

  test('jitter reaches 20 % to both sides', () => {
    const input = { schedule: [100_000], attemptsMade: 1, retryAfterMs: null };
    expect(nextDelayMs({ ...input, random: () => 0 })).toBe(80_000);
    expect(nextDelayMs({ ...input, random: () => 0.999999999 })).toBe(120_000);
  });

  test('every wait lies within the jitter, within 1 s and 24 h, and never before Retry-After', () => {
    const cases = fc.record({
      schedule: fc.array(fc.integer({ min: 0, max: 10 * MAX_RETRY_DELAY_MS }), {
        minLength: 1,
        maxLength: 12,
      }),
      attemptsMade: fc.integer({ min: 1, max: 20 }),
      retryAfterMs: fc.option(fc.integer({ min: 0, max: MAX_RETRY_DELAY_MS })),
      fraction: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    });
    fc.assert(
      fc.property(cases, ({ fraction, ...input }) => {
        const delayMs = nextDelayMs({ ...input, random: () => fraction });
        const scheduledMs = input.schedule[input.attemptsMade - 1];
        if (scheduledMs === undefined || delayMs === null) {
          expect([scheduledMs, delayMs]).toEqual([undefined, null]);
          return;
        }
        expect(Number.isInteger(delayMs)).toBe(true);
        expect(delayMs).toBeGreaterThanOrEqual(MIN_RETRY_DELAY_MS);
        expect(delayMs).toBeLessThanOrEqual(MAX_RETRY_DELAY_MS);
        expect(delayMs).toBeGreaterThanOrEqual(input.retryAfterMs ?? 0);
        expect(delayMs).toBeGreaterThanOrEqual(Math.min(Math.floor(scheduledMs * 0.8), MAX_RETRY_DELAY_MS));
        const latestMs = Math.max(scheduledMs * 1.2, input.retryAfterMs ?? 0, MIN_RETRY_DELAY_MS);
        expect(delayMs).toBeLessThanOrEqual(Math.ceil(latestMs));
      }),
    );
  });
});
