import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query, queryOnly, queryValue } from '../../platform/postgres/sql.ts';

/** Held, shared, while events are stored and their deliveries queued: it shows since when. */
export const PUBLISHING_LOCK = 7_340_002;

/** With a group of WABAs: held, shared, by those who publish for them; alone, while the order scope of an endpoint changes. */
export const ORDER_SCOPE_LOCK = 7_340_004;

/** Takes the publishing lock for the rest of the transaction; before anything is read that decides about lanes. */
export async function lockPublishing(trx: Transaction): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock_shared(:publishingLock::bigint)', {
    publishingLock: PUBLISHING_LOCK,
  });
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
  return await queryOnly<OpenPublishers>(
    database,
    `select cast(pg_snapshot_xmax(pg_current_snapshot()) as text) as xid, array(${PUBLISHING_TRANSACTIONS}) as transactions`,
    { lock: PUBLISHING_LOCK },
  );
}

export async function haveEnded(database: Database, { xid, transactions }: OpenPublishers): Promise<boolean> {
  const ended = await queryValue<boolean>(
    database,
    `select pg_snapshot_xmin(pg_current_snapshot()) >= cast(:xid as xid8)
            and not exists (${PUBLISHING_TRANSACTIONS} and l.virtualtransaction = any (cast(:transactions as text[])))`,
    { lock: PUBLISHING_LOCK, xid, transactions },
  );
  return ended === true;
}
