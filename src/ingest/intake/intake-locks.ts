import { INTAKE_LOCK } from '../../engine/inbox/intake-lock.ts';
import { ORDER_SCOPE_LOCK, PUBLISHING_LOCK } from '../../engine/queue/publishing-locks.ts';
import { CUSTOMERS_LOCK } from '../../features/customers/customers-lock.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** For the function ingest_items: it locks in this order. */
export const INGEST_LOCKS: readonly number[] = [
  INTAKE_LOCK,
  CUSTOMERS_LOCK,
  PUBLISHING_LOCK,
  ORDER_SCOPE_LOCK,
];

/** A lock that holds up one of several shards that are ingested together holds up the others as well. */
const SHARED_WAIT_MS = 1_000;

/**
 * Takes the intake locks of those of the shards that are free, for the rest of the transaction; returns them.
 * They end with the transaction, also when its process dies or freezes (the server ends idle transactions).
 * The locks on customers and publishing come with them; the former may be waited for, for the milliseconds of a send.
 * Statements sent behind it know of them by `HELD_SHARDS`. With several shards, no lock of the transaction is waited for for long.
 */
export async function tryIntakeLocks(trx: Transaction, shards: readonly number[]): Promise<number[]> {
  const impatient =
    shards.length > 1
      ? query(trx, `select set_config('lock_timeout', :waitMs, true)`, { waitMs: String(SHARED_WAIT_MS) })
      : null;
  const [row] = await query<{ shards: number[] }>(
    trx,
    `select coalesce(array_agg(shard order by shard), '{}') as shards, count(customers),
            set_config('heliograph.takes_in', coalesce(array_agg(shard), '{}')::text, true),
            pg_advisory_xact_lock_shared(:publishing::bigint)
       from (select shard, pg_advisory_xact_lock(:customers::integer, shard) as customers
               from (select shard from unnest(:shards::integer[]) as wanted (shard)
                      where pg_try_advisory_xact_lock(:intake::integer, shard) offset 0) as free
              offset 0) as locked`,
    {
      shards: shards.toSorted((a, b) => a - b),
      intake: INTAKE_LOCK,
      customers: CUSTOMERS_LOCK,
      publishing: PUBLISHING_LOCK,
    },
  );
  await impatient;
  return row?.shards ?? [];
}

/** Waits for further shards, those of WABAs whose numbers came in bodies of others. */
export async function lockFurtherShards(trx: Transaction, shards: readonly number[]): Promise<void> {
  await query(
    trx,
    `select pg_advisory_xact_lock(cast(:intakeLock as integer), shard), pg_advisory_xact_lock(cast(:customersLock as integer), shard)
       from (select shard from unnest(cast(:shards as integer[])) as wanted (shard) order by shard) as wanted`,
    { intakeLock: INTAKE_LOCK, customersLock: CUSTOMERS_LOCK, shards },
  );
}
