const BATCH = 10_000;

/** So much at a time, then others have their turn; the rest is done by the next one. */
const LONGEST_MS = 5 * 60_000;

/** Runs a bounded deletion (rows at most → rows deleted) until there is less than that to delete, or for five minutes. */
export async function inBatches(remove: (limit: number) => Promise<number>): Promise<void> {
  const endMs = performance.now() + LONGEST_MS;
  while ((await remove(BATCH)) >= BATCH && performance.now() < endMs);
}
