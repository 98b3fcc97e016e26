/** First when the run starts, then how many of its requests are due by now. */
export type PacerMessage = { startMs: number } | { dueNow: number };

/** When request `n` of an evenly spaced run is due, in ms. */
export function dueAtMs(startMs: number, ratePerSecond: number, n: number): number {
  return startMs + (n * 1000) / ratePerSecond;
}

/** How many of `count` requests are due by `nowMs`, whether or not they have been sent. */
export function dueCount(startMs: number, ratePerSecond: number, count: number, nowMs: number): number {
  if (nowMs < startMs) return 0;
  let due = Math.min(count, Math.floor(((nowMs - startMs) * ratePerSecond) / 1000) + 1);
  // Rounding must not make a request leave early, nor wait for the next tick.
  while (due > 0 && dueAtMs(startMs, ratePerSecond, due - 1) > nowMs) due -= 1;
  while (due < count && dueAtMs(startMs, ratePerSecond, due) <= nowMs) due += 1;
  return due;
}
