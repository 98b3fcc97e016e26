import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';

const KEYS_PER_DAY = 10_000;

/** So many partitions are created per statement. */
const DAYS_AT_ONCE = 10;

/** Makes a new database as wide as one in which the product has run for so many days: partitions and ordering keys. */
export async function ageDatabase(database: Database, days: number): Promise<void> {
  for (let from = days; from > -7; from -= DAYS_AT_ONCE) {
    const to = Math.max(-7, from - DAYS_AT_ONCE);
    await query(
      database,
      'select ensure_partitions(current_date - cast(:from as integer), current_date - cast(:to as integer))',
      { from, to },
    );
    await query(
      database,
      `insert into ordering_keys (waba_id, key, last_sequence)
       select '90000000000' || n % 1000, 'wamid.aged-' || cast(:from as text) || '-' || n, 3
         from generate_series(1, cast(:keys as integer)) as n`,
      { from, keys: KEYS_PER_DAY * (from - to) },
    );
  }
  await database.raw('vacuum analyze ordering_keys');
}
