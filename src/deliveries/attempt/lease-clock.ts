/** The two clocks are read one after the other; a gap below this is no pause. */
const LEAST_PAUSE_MS = 500;

let pausedMs = 0;
let lastMonotonicMs = performance.now();
let lastWallMs = Date.now();

/**
 * Ms on a clock that only goes forward, and goes on while the machine is paused: the monotonic clock stops then, but
 * leases end on the database's. A wall clock that is set forward looks the same; attempts not yet sent are then given
 * back, which loses nothing.
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
