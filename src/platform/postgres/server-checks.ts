import type { Database } from './database.ts';
import { query } from './sql.ts';

/** Ids and days of events come from the process's clock, days of bodies and leases from the database's. */
export const MOST_CLOCK_SKEW_MS = 60_000;

/** By how many milliseconds the database's clock is ahead of this process's, at the least; negative: behind. */
export async function readClockSkewMs(database: Database): Promise<number> {
  const startMs = Date.now();
  const [row] = await query<{ ms: number }>(
    database,
    'select cast(extract(epoch from clock_timestamp()) * 1000 as double precision) as ms',
  );
  // This clock counts whole milliseconds, the database's their parts, too.
  const endMs = Date.now() + 1;
  const ms = row?.ms ?? startMs;
  return ms > endMs ? ms - endMs : Math.min(0, ms - startMs);
}

/** Settings of the server without which a crash can lose or damage what was committed. */
const NEEDED = ['fsync', 'full_page_writes'];

/** Logs a warning when the server would not keep what it commits; silent while it is away. */
export async function warnWhenNotDurable(
  database: Database,
  logger: { warn(details: object, message: string): void },
): Promise<void> {
  try {
    const off = await query<{ name: string }>(
      database,
      `select name from pg_settings where name = any (?::text[]) and setting = 'off' order by name`,
      [NEEDED],
    );
    if (off.length === 0) return;
    const settings = off.map(({ name }) => name);
    logger.warn(
      { settings },
      'PostgreSQL runs without these settings: a crash of its host can lose acknowledged messages',
    );
  } catch {
    // Whoever needs the database says so.
  }
}
