import { afterEach, expect, test, vi } from 'vitest';
import { isInTime, leaseClockMs } from '../../../src/platform/lease-clock.ts';

const TIMEOUT_MS = 15_000;

afterEach(() => vi.restoreAllMocks());

/** Puts both clocks on; the monotonic one stands while the machine is paused. */
function clocks() {
  let monotonicMs = performance.now();
  let wallMs = Date.now();
  vi.spyOn(performance, 'now').mockImplementation(() => monotonicMs);
  vi.spyOn(Date, 'now').mockImplementation(() => wallMs);
  return {
    work: (ms: number) => {
      monotonicMs += ms;
      wallMs += ms;
    },
    pause: (ms: number) => {
      wallMs += ms;
    },
  };
}

test('what was claimed before the machine was paused is not sent after it', () => {
  const { work, pause } = clocks();
  const deadlineMs = leaseClockMs() + TIMEOUT_MS;
  work(1_000);
  expect(isInTime(deadlineMs, TIMEOUT_MS)).toBe(true);
  pause(60_000);
  work(10);
  expect(isInTime(deadlineMs, TIMEOUT_MS)).toBe(false);
  expect(isInTime(leaseClockMs() + TIMEOUT_MS, TIMEOUT_MS)).toBe(true);
});

test('a wall clock that is set back changes nothing', () => {
  const { work, pause } = clocks();
  const startMs = leaseClockMs();
  pause(-3_600_000);
  work(2_000);
  expect(leaseClockMs() - startMs).toBeCloseTo(2_000);
});
