import type { Transaction } from './database.ts';
import { query } from './sql.ts';

/** With a shard: the lock that makes its intake one at a time over all worker processes. */
const INTAKE_LOCK = 7_340_001;

/** Held, shared, while deliveries are queued; alone, while an endpoint's order scope changes. */
export const PUBLISHING_LOCK = 7_340_002;

/** With a shard: held while contacts or conversations are added or change their identity, by intake and by a first message out. */
const CUSTOMERS_LOCK = 7_340_003;

/** Held while an endpoint's order scope changes, so that two processes do not stop publishing one after the other. */
const ORDER_SCOPE_LOCK = 7_340_004;

/** Held by whoever migrates, as long as its connection lives. */
export const MIGRATION_LOCK = 7_340_005;

/** What holds up one of several shards that are taken in together holds up the others as well. */
const SHARED_WAIT_MS = 1_000;

/**
 * Takes the intake locks of those of the shards that are free, for the rest of the transaction; returns them.
 * They end with the transaction, also when its process dies or freezes (the server ends idle transactions).
 * The locks on customers and publishing come with them; the former may be waited for, for the milliseconds of a send.
 * Statements sent behind it know of them by `HELD_SHARDS`. With several shards no lock is waited for for long.
 */
export async function tryIntakeLocks(trx: Transaction, shards: readonly number[]): Promise<number[]> {
  const impatient = shards.length > 1 ? waitAtMost(trx, SHARED_WAIT_MS) : null;
  const [row] = await query<{ shards: number[] }>(
    trx,
    `select coalesce(array_agg(shard order by shard), '{}') as shards, count(customers),
            set_config('heliograph.takes_in', coalesce(array_agg(shard), '{}')::text, true),
            pg_advisory_xact_lock_shared(:publishing::bigint)
       from (select shard, pg_advisory_xact_lock(:customers::integer, shard) as customers
               from (select shard from unnest(:shards::integer[]) as wanted (shard)
                      where pg_try_advisory_xact_lock(:intake::integer, shard) offset 0) as free
              offset 0) as locked`,
    { shards, intake: INTAKE_LOCK, customers: CUSTOMERS_LOCK, publishing: PUBLISHING_LOCK },
  );
  await impatient;
  return row?.shards ?? [];
}

/** Has the transaction wait for each further lock for so long only. */
async function waitAtMost(trx: Transaction, ms: number): Promise<void> {
  await query(trx, `select set_config('lock_timeout', ?, true)`, [String(ms)]);
}

/** SQL: the shards whose locks `tryIntakeLocks` got in this transaction. It costs a loser nothing behind it. */
export const HELD_SHARDS = `cast(current_setting('heliograph.takes_in', true) as integer[])`;

/** Waits for further shards, those of WABAs whose numbers came in bodies of others. */
export async function lockFurtherShards(trx: Transaction, shards: readonly number[]): Promise<void> {
  await query(
    trx,
    `select pg_advisory_xact_lock(cast(? as integer), shard), pg_advisory_xact_lock(cast(? as integer), shard)
       from (select shard from unnest(cast(? as integer[])) as wanted (shard) order by shard) as wanted`,
    [INTAKE_LOCK, CUSTOMERS_LOCK, shards],
  );
}

/**
 * Waits until no body of the shard is being taken in, and keeps it so for the rest of the transaction. Whoever changes
 * whose a phone number is, or has bodies wait again, does it under this lock: what intake remembers of that ends with it.
 */
export async function lockIntake(trx: Transaction, shard: number): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock(cast(? as integer), cast(? as integer))', [
    INTAKE_LOCK,
    shard,
  ]);
  await query(trx, 'update intake_epochs set epoch = epoch + 1 where shard = ?', [shard]);
}

/** By shard that is held: stays the same until somebody else held its lock for a change. */
export async function intakeEpochs(trx: Transaction): Promise<Map<number, string>> {
  const rows = await query<{ shard: number; epoch: string }>(
    trx,
    `select shard, epoch from intake_epochs where shard = any (${HELD_SHARDS})`,
  );
  return new Map(rows.map(({ shard, epoch }) => [shard, epoch]));
}

/** Waits until nobody changes contacts or conversations of the shard, and keeps it so for the rest of the transaction. */
export async function lockCustomers(trx: Transaction, shard: number): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock(cast(? as integer), cast(? as integer))', [
    CUSTOMERS_LOCK,
    shard,
  ]);
}

/** Takes the publishing lock for the rest of the transaction; before anything is read that decides about lanes. */
export async function lockPublishing(trx: Transaction): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock_shared(?::bigint)', [PUBLISHING_LOCK]);
}

/** Waits until nobody publishes and lets nobody begin until the transaction ends. */
export async function stopPublishing(trx: Transaction): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock(?::bigint)', [PUBLISHING_LOCK]);
}

/** Takes the order scope lock for the rest of the transaction; false when another process has it. */
export async function tryOrderScopeLock(trx: Transaction): Promise<boolean> {
  const [row] = await query<{ locked: boolean }>(
    trx,
    'select pg_try_advisory_xact_lock(?::bigint) as locked',
    [ORDER_SCOPE_LOCK],
  );
  return row?.locked === true;
}
