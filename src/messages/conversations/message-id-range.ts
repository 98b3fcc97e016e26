import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** Message_Ids between which messages of a time lie; `low` inclusive, `high` exclusive, null: no bound. */
export type IdRange = { low: string | null; high: string | null };

/**
 * Ids rise with time but for transactions that began before another and ended after it: none lasts longer than this,
 * so within the range the exact time still has to be compared.
 */
const DISORDER_SECONDS = 120;

/**
 * Where messages of a conversation that were stored from `since` on and before `until` lie, by bisection over the
 * index that the walk uses: an index by time would cost every message that is stored.
 */
export async function findIdRange(
  database: Database,
  wabaId: string,
  conversationId: string,
  { since, until }: { since: Date | null; until: Date | null },
): Promise<IdRange> {
  if (since === null && until === null) return { low: null, high: null };
  const rows = await query<{ bound: 'low' | 'high'; id: string }>(
    database,
    `with recursive kept as (
       select coalesce(merged_into, id) as id from conversations where waba_id = :wabaId and id = :conversationId
     ), search (bound, at, low, high) as (
       select b.bound, b.at,
              (select min(m.id) from messages m where m.conversation_id = kept.id),
              (select max(m.id) + 1 from messages m where m.conversation_id = kept.id)
         from kept cross join (values
           ('low', cast(:since as timestamptz) - :seconds * interval '1 second'),
           ('high', cast(:until as timestamptz) + :seconds * interval '1 second')) as b (bound, at)
        where b.at is not null
       union all
       select s.bound, s.at, case when probe.created_at < s.at then probe.id + 1 else s.low end,
              case when probe.created_at < s.at then s.high else s.middle end
         from (select bound, at, low, high, low + (high - low) / 2 as middle from search where low < high) as s
        cross join lateral (
          select m.id, m.created_at from messages m
           where m.conversation_id = (select id from kept) and m.id >= s.middle order by m.id limit 1) as probe
     )
     select bound, low as id from search where low >= high`,
    { wabaId, conversationId, since, until, seconds: DISORDER_SECONDS },
  );
  const idOf = (bound: string) => rows.find((row) => row.bound === bound)?.id ?? null;
  return { low: idOf('low'), high: idOf('high') };
}
