const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** Waits after the first, second, … failed attempt; the last one stays. */
const DELAYS_MS = [
  SECOND_MS,
  2 * SECOND_MS,
  5 * SECOND_MS,
  15 * SECOND_MS,
  MINUTE_MS,
  5 * MINUTE_MS,
  15 * MINUTE_MS,
  30 * MINUTE_MS,
];
const LONGEST_DELAY_MS = 60 * MINUTE_MS;
const JITTER = 0.1;

/**
 * How long to wait after attempt number `attempt` (from 1) failed, in ms: the schedule ±10 %, or what upstream asked
 * for when that is longer, at most an hour. `random` is for tests.
 */
export function retryDelayMs(attempt: number, retryAfterMs: number | null, random = Math.random): number {
  const scheduledMs = DELAYS_MS[attempt - 1] ?? LONGEST_DELAY_MS;
  const variedMs = scheduledMs * (1 + JITTER * (2 * random() - 1));
  return Math.round(Math.min(Math.max(variedMs, retryAfterMs ?? 0), LONGEST_DELAY_MS));
}
