import { RateLimiterPostgres } from 'rate-limiter-flexible';
import type { Database } from './database.ts';
import { type Binding, deleteUpTo } from './sql.ts';

/** Points per key in windows of fixed length, counted for all processes of a database. */
export type RateLimitStore = {
  /** Adds to what a key has taken in its window, which begins with the first addition. */
  add(key: string, points: number): Promise<{ consumed: number; remainingMs: number }>;
};

/** Opens the counts of one kind; `kind` keeps its keys apart from those of others. */
export function openRateLimitStore(
  database: Database,
  { kind, windowSeconds }: { kind: string; windowSeconds: number },
): RateLimitStore {
  const limiter = new RateLimiterPostgres({
    // Its parameters are numbered, as the driver has them.
    storeClient: { query: ({ text, values }: LibraryStatement) => database.raw(text, values) },
    storeType: 'client',
    tableName: 'rate_limits',
    // By the schema: processes need no right to create tables.
    tableCreated: true,
    clearExpiredByTimeout: false,
    keyPrefix: kind,
    // Callers compare: they know what they have let through since.
    points: 1,
    duration: windowSeconds,
  });
  return {
    async add(key, points) {
      const { consumedPoints, msBeforeNext } = await limiter.penalty(key, points);
      return { consumed: consumedPoints, remainingMs: msBeforeNext };
    },
  };
}

/** Forgets up to `limit` windows that are over; returns how many. */
export async function removeExpiredRateLimits(database: Database, limit: number): Promise<number> {
  return await deleteUpTo(database, limit, 'rate_limits', 'expire < ?', [Date.now()]);
}

type LibraryStatement = { text: string; values: readonly Binding[] };
