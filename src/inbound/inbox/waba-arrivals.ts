import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** What arrived from upstream for a WABA lately. */
export type WabaArrivals = {
  /** When a conversation last had a message, in either direction; null: never. */
  lastActivityAt: Date | null;
  /** Parts of bodies of the last 7 days that gave no event, by reason. */
  quarantined: { reason: string; count: number }[];
};

/** When something came last, and what came and gave no event. */
export async function readWabaArrivals(database: Database, wabaId: string): Promise<WabaArrivals> {
  const [[latest], quarantined] = await Promise.all([
    query<{ at: Date }>(
      database,
      `select last_message_at as at from conversations where waba_id = ? and merged_into is null
        order by last_message_at desc, id desc limit 1`,
      [wabaId],
    ),
    query<{ reason: string; count: number }>(
      database,
      `select reason, sum(count)::float8 as count from quarantine_counts
        where waba_id = ? and day > (now() at time zone 'utc')::date - 7
        group by reason order by count desc limit 20`,
      [wabaId],
    ),
  ]);
  return { lastActivityAt: latest?.at ?? null, quarantined };
}
