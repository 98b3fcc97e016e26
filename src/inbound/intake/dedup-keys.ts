import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { byteaArray, execute, query } from '../../platform/postgres/sql.ts';

/** Claims keys (SHA-256 digests, all different); returns those, in hex, that nobody has claimed before. */
export async function claimDedupKeys(trx: Transaction, keys: readonly Buffer[]): Promise<Set<string>> {
  const rows = await query<{ key: string }>(
    trx,
    `insert into dedup_keys (key) select key from unnest(?::bytea[]) as k (key) order by key
     on conflict do nothing returning encode(key, 'hex') as key`,
    [byteaArray(keys)],
  );
  return new Set(rows.map((row) => row.key));
}

/** Upstream redelivers for 7 days. */
const DEDUP_DAYS = 14;

/** Forgets up to `limit` keys older than any redelivery, the oldest first; returns how many. */
export async function forgetOldDedupKeys(database: Database, limit: number): Promise<number> {
  return await execute(
    database,
    `delete from dedup_keys where key = any (array(
       select key from dedup_keys where first_seen_at < now() - interval '${DEDUP_DAYS} days'
        order by first_seen_at limit ?))`,
    [limit],
  );
}
