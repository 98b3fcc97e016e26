import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';

/** For so many days what tenants may see is kept by default, and so are the keys of its order. */
export const AGED_DAYS = 90;

const KEYS_PER_DAY = 10_000;

/** So many days are made per statement: each partition that a transaction makes is locked until its end. */
const DAYS_AT_ONCE = 10;

/** Partitions are made for so many days ahead. */
const DAYS_AHEAD = 7;

/** Makes a new database as wide as one in which the product has run for so many days: partitions and ordering keys. */
export async function ageDatabase(
  database: Database,
  { days = AGED_DAYS, keysPerDay = KEYS_PER_DAY }: { days?: number; keysPerDay?: number } = {},
): Promise<void> {
  for (let from = days; from > -DAYS_AHEAD; from -= DAYS_AT_ONCE) {
    const to = Math.max(-DAYS_AHEAD, from - DAYS_AT_ONCE);
    await query(
      database,
      'select ensure_partitions(current_date - cast(:from as integer), current_date - cast(:to as integer))',
      { from, to },
    );
    await query(
      database,
      `insert into ordering_keys (waba_id, key, last_sequence, used_month)
       select '90000000000' || n % 1000, 'wamid.aged-' || day || '-' || n, 3, date_trunc('month', current_date - day)
         from generate_series(cast(:to as integer) + 1, cast(:from as integer)) as day,
              generate_series(1, cast(:keys as integer)) as n
        where day >= 0`,
      { from, to, keys: keysPerDay },
    );
  }
  await database.raw('vacuum analyze ordering_keys');
}
