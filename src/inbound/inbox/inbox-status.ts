import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { SHARDS } from '../shard.ts';

export type QuarantineReason = {
  reason: string;
  field: string;
  wabaId: string;
  count: number;
  lastDay: string;
};

/** What emitted no event in the last `days` days and why, the most frequent first; at most 50. */
export async function listQuarantineReasons(database: Database, days: number): Promise<QuarantineReason[]> {
  return await query<QuarantineReason>(
    database,
    `select reason, field, waba_id as "wabaId", sum(count)::float8 as count, max(day) as "lastDay"
       from quarantine_counts where day > (now() at time zone 'utc')::date - ?::integer
      group by reason, field, waba_id order by count desc, reason, field, waba_id limit 50`,
    [days],
  );
}

/** When the oldest body arrived that intake has not taken in yet; null when none waits. */
export async function oldestWaitingBodyAt(database: Database): Promise<Date | null> {
  const [row] = await query<{ receivedAt: Date | null }>(
    database,
    `select min(oldest.received_at) as "receivedAt" from unnest(cast(? as integer[])) as s (shard)
      cross join lateral (select received_at from inbox where state = 'new' and shard = s.shard
                           order by shard, id limit 1) as oldest`,
    [SHARDS],
  );
  return row?.receivedAt ?? null;
}
