import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  DEFAULT_RETRY_SCHEDULE_MS,
  MAX_RETRY_DELAY_MS,
  MIN_RETRY_DELAY_MS,
  nextDelayMs,
} from '../../../src/deliveries/retry-schedule.ts';

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
