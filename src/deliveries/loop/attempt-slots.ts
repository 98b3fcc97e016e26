import type { UnderWay } from './endpoint-limiter.ts';

/** Attempts of one process side by side; they mostly wait for the network. */
const SLOTS = 512;

/** One that takes longer waits for a receiver that is slow; others need its slot more. */
const LONG_MS = 500;

/** Long ones included: each holds a connection and its body. */
const MOST_SLOTS = 4_096;

/** Answered and not recorded yet: what is claimed beyond what the database takes would outlive its lease. */
const MOST_ANSWERED = 1_024;

export type AttemptSlots = {
  take(attempt: UnderWay): void;
  /** The attempt waits for nobody outside any more, but is to be recorded. */
  answered(attempt: UnderWay): void;
  giveBack(attempt: UnderWay): void;
  /** Attempts that may be started now. */
  free(): number;
  taken(): number;
};

/**
 * Bounds what one process has under way. Endpoints that begin to hang together would fill any number of slots
 * until their first time-outs, so what waits long for its answer does not count.
 */
export function makeAttemptSlots(
  { quick: quickSlots, most }: { quick: number; most: number } = { quick: SLOTS, most: MOST_SLOTS },
  now: () => number = () => performance.now(),
): AttemptSlots {
  /** Oldest first. */
  const waiting = new Set<UnderWay>();
  const waitingLong = new Set<UnderWay>();
  const answered = new Set<UnderWay>();
  const answeredLate = new Set<UnderWay>();
  const taken = () => waiting.size + waitingLong.size + answered.size + answeredLate.size;
  return {
    take: (attempt) => void waiting.add(attempt),
    answered(attempt) {
      if (waiting.delete(attempt)) answered.add(attempt);
      else if (waitingLong.delete(attempt)) answeredLate.add(attempt);
    },
    giveBack(attempt) {
      for (const set of [answered, waiting, waitingLong, answeredLate]) if (set.delete(attempt)) return;
    },
    free() {
      const longSinceMs = now() - LONG_MS;
      for (const attempt of waiting) {
        if (attempt.startMs > longSinceMs) break;
        waiting.delete(attempt);
        waitingLong.add(attempt);
      }
      const quick = quickSlots - waiting.size - answered.size;
      const unrecorded = MOST_ANSWERED - answered.size - answeredLate.size;
      return Math.max(0, Math.min(quick, unrecorded, most - taken()));
    },
    taken,
  };
}
