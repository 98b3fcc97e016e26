import type { Database } from './database.ts';
import { execute } from './sql.ts';

const DAYS_AHEAD = 7;

/** Makes the daily partitions of the next week; the ones that exist stay. */
export async function ensurePartitions(database: Database): Promise<void> {
  await execute(
    database,
    `select ensure_partitions((now() at time zone 'utc')::date, (now() at time zone 'utc')::date + ?::integer)`,
    [DAYS_AHEAD],
  );
}
