import { RateLimiterPostgres } from 'rate-limiter-flexible';
import type { Database } from './database.ts';
import { deleteUpTo } from './sql.ts';

/** Points per key in windows of fixed length, counted for all processes of a database. */
export type RateLimitStore = {
  /** Adds to the count of a key in its window, which begins with the first addition. */
  add(key: string, points: number): Promise<{ consumed: number; remainingMs: number }>;
};

/** Opens the counts of one kind; `kind` keeps its keys apart from those of others. */
export function openRateLimitStore(
  database: Database,
  { kind, windowSeconds }: { kind: string; windowSeconds: number },
): RateLimitStore {
  const limiter = new RateLimiterPostgres({
    storeClient: numberedClient(database),
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
  return await deleteUpTo(database, limit, 'rate_limits', 'expire < :now', { now: Date.now() });
}

/** For rate-limiter-flexible, which numbers its parameters as the driver does. */
export function numberedClient(database: Database) {
  return {
    query: ({ text, values }: { text: string; values: readonly (string | number)[] }) =>
      database.raw(
        text.replace(/\$(\d+)/g, ':p$1'),
        Object.fromEntries(values.map((value, index) => [`p${index + 1}`, value])),
      ),
  };
}
