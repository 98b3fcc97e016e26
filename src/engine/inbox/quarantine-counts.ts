import type { ErasedTable } from '../../platform/erasing.ts';
import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';

export type QuarantineCount = { reason: string; field: string; wabaId: string; count: number };

export async function countQuarantined(trx: Transaction, counts: readonly QuarantineCount[]): Promise<void> {
  if (counts.length === 0) return;
  await execute(
    trx,
    `insert into quarantine_counts (day, reason, field, waba_id, count)
     select (now() at time zone 'utc')::date, reason, field, waba_id, count
       from unnest(:reason::text[], :field::text[], :wabaId::text[], :count::bigint[]) as c (reason, field, waba_id, count)
     on conflict (day, reason, field, waba_id) do update set count = quarantine_counts.count + excluded.count`,
    columnsOf(counts, 'reason', 'field', 'wabaId', 'count'),
  );
}

export const QUARANTINE_COUNTS: ErasedTable = {
  table: 'quarantine_counts',
  count: 'quarantineCounts',
  key: 'day, reason, field, waba_id',
};
