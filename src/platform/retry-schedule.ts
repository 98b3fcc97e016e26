const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Shortest and longest wait between two attempts of one delivery, in ms. */
export const MIN_RETRY_DELAY_MS = SECOND_MS;
export const MAX_RETRY_DELAY_MS = 24 * HOUR_MS;

const JITTER = 0.2;

/**
 * The waits before attempts 2 to 11, in ms; attempt 1 is made at once. Dense at first because a chat is live, then
 * up to about 69 hours so that a weekend without an operator is survived.
 */
export const DEFAULT_RETRY_SCHEDULE_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  6 * HOUR_MS,
  12 * HOUR_MS,
  24 * HOUR_MS,
  24 * HOUR_MS,
];

type NextDelayInput = {
  /** Waits in ms: entry n-1 follows attempt n. */
  schedule: readonly number[];
  /** Attempts already made, this one included. */
  attemptsMade: number;
  /** What the receiver asked for, null when it asked for nothing. */
  retryAfterMs: number | null;
  /** Uniform in [0, 1). */
  random: () => number;
};

/**
 * Ms to wait before the next attempt, or null when the schedule is exhausted. The scheduled wait is spread by ±20 %
 * so that a receiver that comes back is not met by everything at once; a longer Retry-After wins, a shorter one does
 * not. The result lies in [1 s, 24 h], except that the first attempt of all is due at once (0).
 */
export function nextDelayMs({ schedule, attemptsMade, retryAfterMs, random }: NextDelayInput): number | null {
  if (attemptsMade < 1) return 0;
  const scheduledMs = schedule[attemptsMade - 1];
  if (scheduledMs === undefined) return null;
  const spreadMs = scheduledMs * (1 - JITTER + 2 * JITTER * random());
  return withinRetryLimits(Math.max(spreadMs, retryAfterMs ?? 0));
}

export function withinRetryLimits(delayMs: number): number {
  return Math.round(Math.min(Math.max(delayMs, MIN_RETRY_DELAY_MS), MAX_RETRY_DELAY_MS));
}
