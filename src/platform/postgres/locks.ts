import type { Database, Transaction } from './database.ts';
import { query } from './sql.ts';

/** With a shard: the lock that makes its intake one at a time over all worker processes. */
const INTAKE_LOCK = 7_340_001;

/** Held, shared, while events are stored and their deliveries queued: it tells since when. */
export const PUBLISHING_LOCK = 7_340_002;

/** With a shard: held while contacts or conversations are added or change their identity, by intake and by a first message out. */
const CUSTOMERS_LOCK = 7_340_003;

/** With a group of WABAs: held, shared, by those who publish for them; alone, while the order scope of an endpoint changes. */
export const ORDER_SCOPE_LOCK = 7_340_004;

/** For the function ingest_message, which takes them in this order. */
export const INGEST_LOCKS: readonly number[] = [
  INTAKE_LOCK,
  CUSTOMERS_LOCK,
  PUBLISHING_LOCK,
  ORDER_SCOPE_LOCK,
];

/** Held by the process that migrates, as long as its connection lives. */
export const MIGRATION_LOCK = 7_340_005;

/** What holds up one of several shards that are taken in together holds up the others as well. */
const SHARED_WAIT_MS = 1_000;

/**
 * Takes the intake locks of those of the shards that are free, for the rest of the transaction; returns them. Those `awaited`
 * are waited for: an earlier transaction of the caller has them and is about to commit.
 * They end with the transaction, also when its process dies or freezes (the server ends idle transactions).
 * The locks on customers and publishing come with them; the former may be waited for, for the milliseconds of a send.
 * Statements sent behind it know of them by `HELD_SHARDS`. No lock of the transaction is waited for for longer than
 * `waitMs` (null: as ever).
 */
export async function tryIntakeLocks(
  trx: Transaction,
  shards: readonly number[],
  {
    waitMs = shards.length > 1 ? SHARED_WAIT_MS : null,
    awaited = [],
  }: { waitMs?: number | null; awaited?: readonly number[] } = {},
): Promise<number[]> {
  const impatient =
    waitMs === null ? null : query(trx, `select set_config('lock_timeout', ?, true)`, [String(waitMs)]);
  const [row] = await query<{ shards: number[] }>(
    trx,
    `select coalesce(array_agg(shard order by shard), '{}') as shards, count(customers),
            set_config('heliograph.takes_in', coalesce(array_agg(shard), '{}')::text, true),
            pg_advisory_xact_lock_shared(:publishing::bigint)
       from (select shard, pg_advisory_xact_lock(:customers::integer, shard) as customers
               from (select shard from unnest(:shards::integer[]) as wanted (shard)
                      where case when shard = any (:awaited::integer[])
                                 then pg_advisory_xact_lock(:intake::integer, shard) is not null
                                 else pg_try_advisory_xact_lock(:intake::integer, shard) end offset 0) as free
              offset 0) as locked`,
    {
      shards: shards.toSorted((a, b) => a - b),
      awaited,
      intake: INTAKE_LOCK,
      customers: CUSTOMERS_LOCK,
      publishing: PUBLISHING_LOCK,
    },
  );
  await impatient;
  return row?.shards ?? [];
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
 * Waits until no body of the shard is being taken in, and keeps it so for the rest of the transaction. Changes of
 * the owner of a phone number, and of bodies that wait again, are made under this lock: what intake remembers of that ends with it.
 */
export async function lockIntake(trx: Transaction, shard: number): Promise<void> {
  await holdIntake(trx, shard);
  await query(trx, 'update intake_epochs set epoch = epoch + 1 where shard = ?', [shard]);
}

/** As `lockIntake`, for changes of what intake reads anew for each body: it goes on with what it remembers. */
export async function holdIntake(trx: Transaction, shard: number): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock(cast(? as integer), cast(? as integer))', [
    INTAKE_LOCK,
    shard,
  ]);
}

/** By shard that is held: stays the same until another process has held its lock for a change. */
export async function intakeEpochs(trx: Transaction): Promise<Map<number, string>> {
  const rows = await query<{ shard: number; epoch: string }>(
    trx,
    `select shard, epoch from intake_epochs where shard = any (${HELD_SHARDS})`,
  );
  return new Map(rows.map(({ shard, epoch }) => [shard, epoch]));
}

/** Locks contacts and conversations of the shard against changes for the rest of the transaction. */
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

/** Transactions that were open at one moment and may queue deliveries. */
export type OpenPublishers = { xid: string; transactions: string[] };

const PUBLISHING_TRANSACTIONS = `select l.virtualtransaction from pg_locks l
  where l.database = (select oid from pg_database where datname = current_database())
    and l.locktype = 'advisory' and l.classid = 0 and l.objid = cast(:lock as oid) and l.objsubid = 1`;

/**
 * Those that are open now, which may not see what has just been committed: all that have written something, and those that
 * hold the publishing lock and have not.
 */
export async function openPublishers(database: Database): Promise<OpenPublishers> {
  const [row] = await query<OpenPublishers>(
    database,
    `select cast(pg_snapshot_xmax(pg_current_snapshot()) as text) as xid, array(${PUBLISHING_TRANSACTIONS}) as transactions`,
    { lock: PUBLISHING_LOCK },
  );
  if (row === undefined) throw new Error('the database did not tell its transactions');
  return row;
}

/** Whether all of them have ended. */
export async function haveEnded(database: Database, { xid, transactions }: OpenPublishers): Promise<boolean> {
  const [row] = await query<{ ended: boolean }>(
    database,
    `select pg_snapshot_xmin(pg_current_snapshot()) >= cast(:xid as xid8)
            and not exists (${PUBLISHING_TRANSACTIONS} and l.virtualtransaction = any (cast(:transactions as text[]))) as ended`,
    { lock: PUBLISHING_LOCK, xid, transactions },
  );
  return row?.ended === true;
}
