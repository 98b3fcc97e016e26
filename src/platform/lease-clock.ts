/** How long a claim protects an attempt of up to `timeoutMs`: as much again, for recording it. */
export function leaseMsFor(timeoutMs: number): number {
  return timeoutMs * 2;
}

/** An attempt that has less than this share of its time left when it could send releases its lease instead. */
const LEAST_SHARE_TO_SEND = 0.25;

/** Whether an attempt may still be sent: `deadlineMs` is on the clock of leases. */
export function isInTime(deadlineMs: number, timeoutMs: number): boolean {
  return deadlineMs - leaseClockMs() >= timeoutMs * LEAST_SHARE_TO_SEND;
}

/** The two clocks are read one after the other; a gap below this is no pause. */
const LEAST_PAUSE_MS = 500;

let pausedMs = 0;
let lastMonotonicMs = performance.now();
let lastWallMs = Date.now();

/**
 * Ms on a clock that only goes forward, and goes on while the machine is paused: the monotonic clock stops then, but
 * leases end on the database's. A wall clock that is set forward looks the same; attempts not yet sent then release
 * their leases, which loses nothing.
 */
export function leaseClockMs(): number {
  const monotonicMs = performance.now();
  const wallMs = Date.now();
  const gapMs = wallMs - lastWallMs - (monotonicMs - lastMonotonicMs);
  if (gapMs > LEAST_PAUSE_MS) pausedMs += gapMs;
  lastMonotonicMs = monotonicMs;
  lastWallMs = wallMs;
  return monotonicMs + pausedMs;
}
