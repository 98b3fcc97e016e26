/** When to look at a whole queue again, after looks at its new end only. */
export type FullLooks = {
  isDue(): boolean;
  /** A full look has taken so long. */
  took(ms: number): void;
};

/** A full look may take a tenth of the time, and is never further away than this. */
const REST_TIMES = 10;
const LONGEST_REST_MS = 10_000;

/**
 * While somebody holds an old snapshot (a dump, a forgotten transaction) nothing that was taken out of a queue can be
 * cleared away, and whoever looks from its beginning walks over all of it. Full looks rest for as long as that takes
 * them; in between, what is new is found behind a place that lies a little back.
 */
export function makeFullLooks({ atLeastMs = 0, now = () => performance.now() } = {}): FullLooks {
  let nextMs = Number.NEGATIVE_INFINITY;
  return {
    isDue: () => now() >= nextMs,
    took(ms) {
      nextMs = now() + Math.max(atLeastMs, Math.min(LONGEST_REST_MS, REST_TIMES * ms));
    },
  };
}
