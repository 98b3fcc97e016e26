import type { Database } from '../../../platform/postgres/database.ts';
import { queryOne } from '../../../platform/postgres/sql.ts';
import type { StoredOwner } from '../../customers/threads.ts';

/** What is known of who has a conversation. */
export type ThreadFacts = {
  /** By the latest handover or control call. */
  owner: StoredOwner | null;
  role: string | null;
  since: Date | null;
  /** When the customer last wrote to us. */
  writtenAt: Date | null;
  /** The latest message of which we got a copy and not the message, and the latest of these from the customer. */
  copiedAt: Date | null;
  copiedWrittenAt: Date | null;
};

/** `since`: the time of the report or message that shows it. */
export type Thread = { owner: 'us' | 'other' | 'unknown'; role: string | null; since: Date };

const IDLE_MS = 24 * 3_600_000;

/**
 * Who has a conversation; null where no other responder is known, and where it is idle: upstream gives the next
 * message of the customer to whom it is for. What is latest counts. Of one second a handover counts most, then what the
 * customer wrote to us, then a copy: the facts decide, never the order in which they came.
 */
export function threadOf(facts: ThreadFacts, now: Date): Thread | null {
  const { owner, role, since, writtenAt, copiedAt, copiedWrittenAt } = facts;
  if (since === null && copiedAt === null) return null;
  const [reported, written, copied] = [msOf(since), msOf(writtenAt), msOf(copiedAt)];
  const last = Math.max(written, msOf(copiedWrittenAt));
  // A handover so late means that the customer wrote in between, where we did not see it.
  const idleFrom = reported > last + IDLE_MS ? reported : last === Number.NEGATIVE_INFINITY ? copied : last;
  if (now.getTime() - idleFrom >= IDLE_MS) return null;
  if (since !== null && reported >= written && reported >= copied)
    return owner === null || owner === 'none' ? null : { owner, role, since };
  if (writtenAt !== null && written >= copied) return { owner: 'us', role: null, since: writtenAt };
  return copiedAt === null ? null : { owner: 'other', role: null, since: copiedAt };
}

function msOf(at: Date | null): number {
  return at?.getTime() ?? Number.NEGATIVE_INFINITY;
}

/** More than can come from one customer in 24 hours. */
const MAX_SCANNED = 20_000;

/** A time behind its arrival would outdo all that comes later. */
const WRITTEN_AT = 'least(coalesce(m.sent_at, m.created_at), m.created_at)';

/** So many messages may come before one that the customer wrote later than they. */
const LATE_MESSAGES = 20;

export async function findThread(
  database: Database,
  wabaId: string,
  conversationId: string,
): Promise<Thread | null> {
  const facts = await queryOne<ThreadFacts & { now: Date }>(
    database,
    `select c.thread_owner as owner, c.thread_role as role, c.thread_since as since, now() as now,
            copied.at as "copiedAt", copied_written.at as "copiedWrittenAt", written.at as "writtenAt"
       from (select coalesce(merged_into, id) as id from conversations
              where waba_id = :wabaId and id = :conversationId) as kept
       join conversations c on c.id = kept.id and c.waba_id = :wabaId
       left join lateral (select m.sent_at as at from messages m
                           where m.conversation_id = c.id and m.origin = 'other_responder' and m.upstream_id is not null
                           order by m.sent_at desc limit 1) as copied on true
       left join lateral (select m.sent_at as at from messages m
                           where m.conversation_id = c.id and m.origin = 'other_responder' and m.upstream_id is not null and m.direction = 'inbound'
                           order by m.sent_at desc limit 1) as copied_written on true
       left join lateral (
         select max(newest.at) as at
           from (select ${WRITTEN_AT} as at
                   from (select x.id, x.direction from messages x where x.conversation_id = c.id
                          order by x.id desc limit ${MAX_SCANNED}) as k
                   join messages m on m.id = k.id and m.origin is null and m.type <> 'call'
                  where k.direction = 'inbound' order by k.id desc limit ${LATE_MESSAGES}) as newest) as written
              on coalesce(c.thread_since, copied.at) is not null`,
    { wabaId, conversationId },
  );
  return facts === null ? null : threadOf(facts, facts.now);
}
