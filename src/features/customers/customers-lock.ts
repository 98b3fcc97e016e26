import type { Transaction } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** Taken with a shard while contacts or conversations are added or change their identity, by intake and by a first message out. */
export const CUSTOMERS_LOCK = 7_340_003;

export async function lockCustomers(trx: Transaction, shard: number): Promise<void> {
  await query(trx, 'select pg_advisory_xact_lock(cast(:customersLock as integer), cast(:shard as integer))', {
    customersLock: CUSTOMERS_LOCK,
    shard,
  });
}
