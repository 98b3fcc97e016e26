import type { Database } from './database.ts';

/** Shares an answer for `maxAgeMs`, once it is there: a caller never waits for the connection of another. */
export function recentRead<Answer>(
  maxAgeMs: number,
  read: (database: Database) => Promise<Answer>,
): (database: Database) => Promise<Answer> {
  const latest = new WeakMap<Database, { sinceMs: number; answer: Answer }>();
  return async (database) => {
    const known = latest.get(database);
    const nowMs = performance.now();
    if (known !== undefined && nowMs - known.sinceMs < maxAgeMs) return known.answer;
    const answer = await read(database);
    latest.set(database, { sinceMs: nowMs, answer });
    return answer;
  };
}

/** Reading who holds which lock stops everybody who takes one, so lists share it for so long. */
export const LOCKS_MAX_AGE_MS = 50;
