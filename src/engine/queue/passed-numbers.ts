import type { Database } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';

/** Statuses of a message may come for so long, and their number must follow the last one that a tenant saw. */
const KEPT_DAYS = 60;
const PASSED = 1_000;
const BATCH = 10_000;

/**
 * Passes over a thousand numbers of each ordering key that may have gone out and are not known any more, in batches:
 * a tenant that compares X-Service-Sequence would take a number for old. Keys that are not known either begin behind
 * as many. Returns of how many keys numbers were passed over.
 */
export async function passSequences(database: Database): Promise<number> {
  await execute(
    database,
    `insert into ordering_key_floor as f (last_sequence, ends_at)
     values (${PASSED}, now() + interval '${KEPT_DAYS} days')
     on conflict (only_row) do update set last_sequence = f.last_sequence + ${PASSED}, ends_at = excluded.ends_at`,
  );
  let keys = 0;
  for (let after: Key | null = { wabaId: '', key: '' }; after !== null; ) {
    const page: Key[] = await query<Key>(
      database,
      `with page as (
         select waba_id, key from ordering_keys
          where (waba_id, key) > (:wabaId, :key)
            and used_month >= date_trunc('month', now() at time zone 'utc' - interval '${KEPT_DAYS} days')
          order by waba_id, key limit ${BATCH}), passed as (
         update ordering_keys k set last_sequence = last_sequence + ${PASSED}
           from page where k.waba_id = page.waba_id and k.key = page.key)
       select waba_id as "wabaId", key from page order by waba_id, key`,
      after,
    );
    keys += page.length;
    after = page.length < BATCH ? null : (page.at(-1) ?? null);
  }
  return keys;
}

type Key = { wabaId: string; key: string };
