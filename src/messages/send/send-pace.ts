/** One message in 6 seconds to one recipient; 45 at once are borrowed from later. */
export const PAIR_PACE = { intervalMs: 6_000, burst: 45 };

/** Evenly spaced over the second, so that upstream never counts more than it allows in any second. */
export function numberPace(messagesPerSecond: number) {
  return { intervalMs: 1_000 / messagesPerSecond, burst: 1 };
}

const LONGEST_WAIT_MS = 5 * 60_000;
const FIRST_WAIT_MS = 1_000;

/** How long to wait after the `attempt`-th refusal that passes, in ms: 1, 4, 16, 64, 256 s as upstream advises, ±10 %. */
export function sendRetryDelayMs(attempt: number, retryAfterMs: number | null, random = Math.random): number {
  const scheduledMs = Math.min(FIRST_WAIT_MS * 4 ** Math.min(attempt - 1, 10), LONGEST_WAIT_MS);
  const variedMs = scheduledMs * (0.9 + 0.2 * random());
  return Math.round(Math.max(variedMs, Math.min(retryAfterMs ?? 0, LONGEST_WAIT_MS)));
}
