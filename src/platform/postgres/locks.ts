import type { Transaction } from './database.ts';
import { query } from './sql.ts';

/** With a shard: the lock that makes its intake one at a time over all worker processes. */
const INTAKE_LOCK = 7_340_001;

/** Held, shared, while events are stored and their deliveries queued: it tells since when somebody does. */
export const PUBLISHING_LOCK = 7_340_002;

/** With a shard: held while contacts or conversations are added or change their identity, by intake and by a first message out. */
const CUSTOMERS_LOCK = 7_340_003;

/** With a group of WABAs: held, shared, by those who publish for them; alone, while the order scope of an endpoint changes. */
export const ORDER_SCOPE_LOCK = 7_340_004;

/** Held by whoever migrates, as long as its connection lives. */
export const MIGRATION_LOCK = 7_340_005;

/** What holds up one of several shards that are taken in together holds up the others as well. */
const SHARED_WAIT_MS = 1_000;

/**
 * Takes the intake locks of those of the shards that are free, for the rest of the transaction; returns them.
 * They end with the transaction, also when its process dies or freezes (the server ends idle transactions).
 * The locks on customers and publishing come with them; the former may be waited for, for the milliseconds of a send.
 * Statements sent behind it know of them by `HELD_SHARDS`. No lock of the transaction is waited for for longer than
 * `waitMs` (null: as ever).
 */
export async function tryIntakeLocks(
  trx: Transaction,
  shards: readonly number[],
  waitMs = shards.length > 1 ? SHARED_WAIT_MS : null,
): Promise<number[]> {
  const impatient = waitMs === null ? null : waitAtMost(trx, waitMs);
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

/**
 * Keeps the order scopes of these WABAs' endpoints as they are until the transaction ends; before they are read. Whoever
 * changes one (the function apply_order_scope) does not wait for this lock, and holds it for one statement.
 */
export async function keepOrderScopes(trx: Transaction, wabaIds: readonly string[]): Promise<void> {
  await query(
    trx,
    `select count(pg_advisory_xact_lock_shared(?, order_scope_group(waba_id)))
       from unnest(cast(? as text[])) as w (waba_id)`,
    [ORDER_SCOPE_LOCK, wabaIds],
  );
}
