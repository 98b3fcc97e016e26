import type { Transaction } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';

/** With a shard: held while contacts or conversations are added or change their identity, by intake and by a first message out. */
export const CUSTOMERS_LOCK = 7_340_003;

/** Locks contacts and conversations of the shard against changes for the rest of the transaction. */
export async function lockCustomers(trx: Transaction, shard: number): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock(cast(? as integer), cast(? as integer))', [
    CUSTOMERS_LOCK,
    shard,
  ]);
}
