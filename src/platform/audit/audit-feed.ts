import type { Database } from '../postgres/database.ts';
import { query, queryOnly } from '../postgres/sql.ts';

/** An entry at its place in the order of commits: what is read behind a place is never before it later. */
export type ChainedEntry = {
  position: string;
  at: Date;
  tenantId: string | null;
  wabaId: string | null;
  actor: string;
  actorUserId: string | null;
  action: string;
  target: string;
  detail: Record<string, string | number | boolean | null>;
};

/** So many entries are looked through at a time, however few of them are asked for. */
const WINDOW = 10_000;

/** The first entries with these actions behind a place, and how far was looked. */
export async function readAuditFeed(
  database: Database,
  {
    actions,
    tenantId,
    after,
    limit,
  }: { actions: readonly string[]; tenantId: string | null; after: string; limit: number },
): Promise<{ entries: ChainedEntry[]; position: string; hasMore: boolean }> {
  const end = await queryOnly<{ last: string }>(
    database,
    'select coalesce(max(position), 0)::text as last from audit_chain',
  );
  const last = BigInt(end.last);
  const until = BigInt(after) + BigInt(WINDOW) < last ? BigInt(after) + BigInt(WINDOW) : last;
  // Along the chain until there are enough, whatever the planner believes of entries that came just now: `offset 0` keeps it to that.
  const entries = await query<ChainedEntry>(
    database,
    `select c.position::text, a.at, a.tenant_id as "tenantId", a.waba_id as "wabaId", a.actor, a.actor_user_id as "actorUserId",
            a.action, a.target, a.detail
       from audit_chain c cross join lateral (
         select * from audit_log
          where id = c.entry_id and action = any (cast(:actions as text[]))
                ${tenantId === null ? '' : 'and tenant_id = cast(:tenantId as bigint)'} offset 0) as a
      where c.position > cast(:after as bigint) and c.position <= cast(:until as bigint)
      order by c.position limit :limit`,
    { after, until: String(until), actions, limit, ...(tenantId !== null && { tenantId }) },
  );
  const isFull = entries.length === limit;
  const position =
    (isFull ? entries.at(-1)?.position : null) ?? String(until > BigInt(after) ? until : BigInt(after));
  return { entries, position, hasMore: BigInt(position) < last };
}
