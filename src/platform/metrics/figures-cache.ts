import { setTimeout as sleep } from 'node:timers/promises';

/** Two scrapers, or one that asks often, cost one read in this time. */
const KEEP_MS = 5_000;

/**
 * What `read` found at most 5 s ago; null when it failed or takes longer than `waitMs`. One read at a time: while one
 * hangs, nobody adds another.
 */
export function makeFiguresCache<Figures>(options: {
  read: () => Promise<Figures>;
  /** Milliseconds on any clock that does not go back. */
  now: () => number;
  waitMs: number;
}): () => Promise<Figures | null> {
  let latest: { sinceMs: number; figures: Promise<Figures | null>; isRunning: boolean } | null = null;

  const begin = () => {
    const started = { sinceMs: options.now(), figures: options.read().catch(() => null), isRunning: true };
    void started.figures.then(() => {
      started.isRunning = false;
    });
    return started;
  };

  return async () => {
    const isFresh = latest !== null && (latest.isRunning || options.now() - latest.sinceMs < KEEP_MS);
    if (latest === null || !isFresh) latest = begin();
    return await Promise.race([latest.figures, sleep(options.waitMs, null, { ref: false })]);
  };
}
