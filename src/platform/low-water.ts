/** A full look rests for so many times what it took, but at least and at most as long as the others say. */
type FullLookRest = { times: number; leastMs?: number; longestMs?: number };

type Options = {
  rest: FullLookRest;
  /** Within so long what has drawn its place is visible to looks. 0: the caller's `end` lies back by as much. */
  lagMs?: number;
  now?: () => number;
};

export type LowWater = {
  /** Where a look that begins now has to begin; null: at the beginning, as the first one and full ones do. */
  from(): number | null;
  /**
   * A look has ended that took so long from before its `from()`. It found `oldest` waiting (null: nothing), and what has
   * no place yet will get `end` or a later one. `seen` null: it may have left out what is old.
   */
  looked(look: { tookMs: number; seen: { end: number; oldest: number | null } | null }): void;
  /** Something may have come to wait again at an old place. */
  reset(): void;
};

/** As often as this is enough for a lag of minutes. */
const NOTED_EVERY_MS = 1_000;

/**
 * Where looks into a queue begin. While a session holds an old snapshot (a dump, a forgotten transaction) nothing that left
 * the queue can be cleared away, and a look from the beginning walks over all of it. So looks begin where the queue ended
 * `lagMs` ago, or at the oldest that waits. What becomes visible later than that waits for the next full look.
 * Places are numbers that grow: ids, positions, days, milliseconds.
 */
export function makeLowWater({ rest, lagMs = 0, now = () => performance.now() }: Options): LowWater {
  const { times, leastMs = 0, longestMs = Number.POSITIVE_INFINITY } = rest;
  let ends: { atMs: number; end: number }[] = [];
  let mark: number | null = null;
  let nextFullMs = Number.NEGATIVE_INFINITY;
  let newestBeganMs = Number.NEGATIVE_INFINITY;
  const reset = () => {
    ends = [];
    mark = null;
    nextFullMs = now();
    newestBeganMs = nextFullMs;
  };
  return {
    from: () => (now() >= nextFullMs ? null : mark),
    looked({ tookMs, seen }) {
      const beganMs = now() - tookMs;
      // One that ended after this moment, but began before, may have begun at the mark.
      if (beganMs >= nextFullMs) nextFullMs = now() + Math.min(longestMs, Math.max(leastMs, times * tookMs));
      if (seen === null) return;
      // A look that a later one overtook did not see what that one found: it raises nothing.
      const isOvertaken = beganMs < newestBeganMs;
      if (!isOvertaken) newestBeganMs = beganMs;
      // The database was restored to an earlier moment.
      if (!isOvertaken && mark !== null && seen.end < mark) return reset();
      const atMs = lagMs === 0 ? beganMs : now();
      const newest = ends.at(-1);
      if (newest === undefined || atMs - newest.atMs >= Math.min(NOTED_EVERY_MS, lagMs))
        ends.push({ atMs, end: seen.end });
      const settled = ends.findLastIndex((noted) => noted.atMs <= beganMs - lagMs);
      ends = ends.slice(Math.max(0, settled));
      const free = isOvertaken || settled < 0 ? mark : (ends[0]?.end ?? null);
      mark = free === null || seen.oldest === null ? free : Math.min(free, seen.oldest);
    },
    reset,
  };
}
