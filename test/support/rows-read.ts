import type { Transaction } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';

/** Rows of a table, or of its daily partitions, that the transaction has read until now, dead ones left out. */
export async function rowsRead(trx: Transaction, table: string): Promise<number> {
  const [row] = await query<{ count: string }>(
    trx,
    `select coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0) as count
       from pg_stat_xact_user_tables where relname ~ ('^' || cast(:table as text) || '(_default|_[0-9]+)?$')`,
    { table },
  );
  return Number(row?.count);
}
