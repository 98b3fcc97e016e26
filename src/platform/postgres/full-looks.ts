/** When to look at a whole queue again, after looks at its new end only. */
export type FullLooks = {
  isDue(): boolean;
  /** A full look has taken so long. */
  took(ms: number): void;
};

/** A full look may take a tenth of the time, unless its caller can wait longer, and is never further away than this. */
const USUAL_REST = { times: 10, longestMs: 10_000 };

/**
 * While somebody holds an old snapshot (a dump, a forgotten transaction) nothing that was taken out of a queue can be
 * cleared away, and whoever looks from its beginning walks over all of it. Full looks rest for as long as that takes
 * them; in between, what is new is found behind a place that lies a little back.
 */
export function makeFullLooks(rest = USUAL_REST): FullLooks {
  let nextMs = Number.NEGATIVE_INFINITY;
  return {
    isDue: () => performance.now() >= nextMs,
    took(ms) {
      nextMs = performance.now() + Math.min(rest.longestMs, rest.times * ms);
    },
  };
}
