import type { Database } from '../../../platform/postgres/database.ts';
import { LOCKS_MAX_AGE_MS, recentRead } from '../../../platform/postgres/recent-read.ts';
import { query, queryOne, queryOnly, queryValue } from '../../../platform/postgres/sql.ts';
import type { CustomerReference } from '../../customers/customer-reference.ts';
import type { GroupState } from '../../customers/groups.ts';
import { IS_OPTED_OUT, OPT_OUT_OF_CONVERSATION, type OptOutMark } from '../../customers/opt-outs.ts';

export type ConversationRow = {
  id: string;
  phoneNumberId: string;
  waId: string | null;
  userId: string | null;
  name: string | null;
  username: string | null;
  groupId: string | null;
  groupSubject: string | null;
  groupState: GroupState | null;
  /** All null: the customer gets all messages. */
  optOutScope: OptOutMark['scope'] | null;
  optOutSource: OptOutMark['source'] | null;
  optOutSince: Date | null;
  lastMessageAt: Date;
  createdAt: Date;
  /** `lastMessageAt` with all its digits: a Date has no microseconds, and a cursor must not skip any. */
  lastMessageAtText: string;
};

export type ConversationFilter = {
  phoneNumberId: string | null;
  customer: CustomerReference | null;
  since: Date | null;
  /** Left out: all; cursors that were given out before there was this are good for that. */
  optedOut?: boolean;
};

export type ConversationWalk = {
  order: 'asc' | 'desc';
  after: { lastMessageAtText: string; id: string } | null;
  limit: number;
};

const CONVERSATION_COLUMNS = `c.id, c.phone_number_id as "phoneNumberId", u.wa_id as "waId",
  nullif(u.user_id, '') as "userId", u.profile_name as "name", u.username, c.group_id as "groupId",
  g.subject as "groupSubject", g.state as "groupState",
  p.scope as "optOutScope", p.source as "optOutSource", p.since as "optOutSince",
  c.last_message_at as "lastMessageAt", c.created_at as "createdAt",
  cast(c.last_message_at as text) as "lastMessageAtText"`;

const OPT_OUT = `left join lateral (${OPT_OUT_OF_CONVERSATION}) as p on true`;

/** The largest page, and one row that tells whether there is another. */
const MAX_ROWS = 101;

/**
 * Up to `limit` conversations of a WABA by their last activity. Merged ones are left out. `asc` ends before
 * conversations that may still get company behind them, so that a reader that pages upwards misses none.
 */
export async function listConversations(
  database: Database,
  wabaId: string,
  { phoneNumberId, customer, since, optedOut }: ConversationFilter,
  { order, after, limit }: ConversationWalk,
): Promise<ConversationRow[]> {
  const behind = order === 'asc' ? '>' : '<';
  const horizon = order === 'asc' ? await conversationHorizon(database) : null;
  const conditions = [
    'c.waba_id = :wabaId and c.merged_into is null',
    ...(phoneNumberId === null ? [] : ['c.phone_number_id = :phoneNumberId']),
    ...(since === null ? [] : ['c.last_message_at >= cast(:since as timestamptz)']),
    ...(optedOut === undefined ? [] : [`${IS_OPTED_OUT} = :optedOut`]),
    ...(horizon === null ? [] : ['c.last_message_at < cast(:horizon as timestamptz)']),
    ...(after === null
      ? []
      : [`(c.last_message_at, c.id) ${behind} (cast(:at as timestamptz), cast(:id as bigint))`]),
  ];
  // A page is cut before anything is joined, and by a number that is known when the plan is made: for an unknown one
  // PostgreSQL would prepare for a large part of the table.
  return await query<ConversationRow>(
    database,
    `select ${CONVERSATION_COLUMNS}
       from (select c.* from ${customer === null ? 'conversations' : `(${conversationsOf(customer)})`} c
              where ${conditions.join(' and ')}
              order by c.last_message_at ${order}, c.id ${order} limit ${MAX_ROWS}) as c
       left join contacts u on u.id = c.contact_id and u.waba_id = c.waba_id
       left join group_details g on g.conversation_id = c.id ${OPT_OUT}
      order by c.last_message_at ${order}, c.id ${order} limit :limit`,
    {
      wabaId,
      phoneNumberId,
      ...customer,
      since,
      optedOut: optedOut ?? null,
      horizon,
      at: after?.lastMessageAtText ?? null,
      id: after?.id ?? null,
      limit,
    },
  );
}

/**
 * A customer has few conversations, one per number: `offset 0` keeps PostgreSQL from walking all conversations in order
 * until it meets them. Upstream may know a phone under other digits than people write (Brazil, Mexico); its answers
 * showed which.
 */
function conversationsOf(customer: CustomerReference): string {
  const contacts =
    'userId' in customer
      ? 'select id from contacts where waba_id = :wabaId and user_id = :userId'
      : `select id from contacts where waba_id = :wabaId and wa_id = :phone
         union select k.id from phone_aliases p join contacts k on k.waba_id = p.waba_id and k.wa_id = p.wa_id
                where p.waba_id = :wabaId and p.phone = :phone`;
  return `select * from conversations where contact_id = any (array(${contacts})) offset 0`;
}

/** For a transaction whose start is hidden from us: none lasts longer. */
const MAX_TRANSACTION_SECONDS = 60;

/** Against a clock of the database server that is set back a little while it runs. */
const CLOCK_SPARE_MS = 100;

/**
 * The time before which no conversation will still become active, as the database writes it: transactions end in
 * another order than that of the times they noted. A writer of conversations holds a lock on the table from before
 * he reads the clock (customers.ts, recipient-conversations.ts) until he ends.
 * A separate statement, before the one that reads conversations: that one then sees what ended meanwhile.
 */
const conversationHorizon = recentRead(LOCKS_MAX_AGE_MS, async (database) => {
  const { at } = await queryOnly<{ at: string }>(
    database,
    `select cast(least(clock_timestamp(), min(coalesce(a.xact_start, clock_timestamp()
               - :maxSeconds * interval '1 second'))) - :spareMs * interval '1 millisecond' as text) as at
       from pg_locks l left join pg_stat_activity a on a.pid = l.pid
      where l.database = (select oid from pg_database where datname = current_database())
        and l.locktype = 'relation' and l.mode = 'RowExclusiveLock'
        and l.relation = cast(cast('conversations' as regclass) as oid)`,
    { maxSeconds: MAX_TRANSACTION_SECONDS, spareMs: CLOCK_SPARE_MS },
  );
  return at;
});

export type ConversationDetail = ConversationRow & {
  displayPhoneNumber: string;
  verifiedName: string;
  inboundCount: number;
  outboundCount: number;
  lastInboundAt: Date | null;
  groupDescription: string | null;
  lastCallAt: Date | null;
  /** Whether one of them was less than 24 hours ago, by the database's clock; of a group any of its members wrote. */
  isWindowOpen: boolean;
};

/** How many of the newest messages are counted: read from the index alone, about 2 ms. */
export const MAX_COUNTED_MESSAGES = 10_000;

/**
 * How many are looked through for what the customer wrote last: more than can be sent to one customer in 24 hours, so
 * that an open window is always found.
 */
const MAX_SCANNED_MESSAGES = 20_000;

/** A time behind its arrival would keep the window open for ever. Messages that overtook each other on their way: the latest of so many counts. */
const NEWEST_INBOUND = 50;

/** Upstream says these about a customer; the customer wrote nothing. */
export const NOT_WRITTEN = `('system', 'edit', 'revoke', 'call')`;

const newestMessages = (limit: number) =>
  `select x.id, x.direction, x.type from messages x where x.conversation_id = c.id order by x.id desc limit ${limit}`;

/** When the customer, or one of the group, last wrote in the conversation `c`. */
export const LAST_WRITTEN = `
        select greatest(max(recent.at), (
                 select least(h.sent_at, h.created_at) from messages h
                  where h.conversation_id = c.id and h.origin = 'history' and h.direction = 'inbound'
                    and h.sent_at is not null and h.type not in ${NOT_WRITTEN}
                  order by h.sent_at desc limit 1)) as at
          from (select m.at from (${newestMessages(MAX_SCANNED_MESSAGES)}) as k
                 cross join lateral (select least(coalesce(x.sent_at, x.created_at), x.created_at) as at from messages x
                                      where x.id = k.id and (x.origin is null or x.origin = 'other_responder') offset 0) as m
                 where k.direction = 'inbound' and k.type not in ${NOT_WRITTEN}
                 order by k.id desc limit ${NEWEST_INBOUND}) as recent`;

const IS_WINDOW_OPEN = `coalesce(greatest(written.at, c.last_call_at) > now() - interval '24 hours', false)`;

/** Whether a conversation that is no merged one has its customer service window open. */
export async function isWindowOpen(
  database: Database,
  wabaId: string,
  conversationId: string,
): Promise<boolean> {
  const text = `select ${IS_WINDOW_OPEN} from conversations c cross join lateral (${LAST_WRITTEN}) as written
                 where c.waba_id = :wabaId and c.id = :conversationId`;
  return (await queryValue<boolean>(database, text, { wabaId, conversationId })) ?? false;
}

/** SQL over `conversations c` with LAST_WRITTEN as `written`. */
const WINDOW_COLUMNS = `written.at as "lastInboundAt", c.last_call_at as "lastCallAt", ${IS_WINDOW_OPEN} as "isWindowOpen"`;

export type ServiceWindow = { isWindowOpen: boolean; lastInboundAt: Date | null; lastCallAt: Date | null };

/** The customer service windows of these conversations of a WABA, by id. */
export async function serviceWindows(
  database: Database,
  wabaId: string,
  conversationIds: readonly string[],
): Promise<Map<string, ServiceWindow>> {
  const rows = await query<ServiceWindow & { id: string }>(
    database,
    `select c.id, ${WINDOW_COLUMNS} from conversations c cross join lateral (${LAST_WRITTEN}) as written
      where c.waba_id = :wabaId and c.id = any (cast(:conversationIds as bigint[]))`,
    { wabaId, conversationIds },
  );
  return new Map(rows.map((row) => [row.id, row]));
}

/** The conversation that it was merged into, if it was. */
export async function findConversation(
  database: Database,
  wabaId: string,
  conversationId: string,
): Promise<ConversationDetail | null> {
  return await queryOne<ConversationDetail>(
    database,
    `select ${CONVERSATION_COLUMNS}, n.display_phone_number as "displayPhoneNumber",
            n.verified_name as "verifiedName", counted.inbound as "inboundCount", counted.outbound as "outboundCount",
            g.description as "groupDescription", ${WINDOW_COLUMNS}
       from (select coalesce(merged_into, id) as id from conversations
              where waba_id = :wabaId and id = :conversationId) as kept
       join conversations c on c.id = kept.id and c.waba_id = :wabaId
       left join contacts u on u.id = c.contact_id and u.waba_id = c.waba_id
       left join group_details g on g.conversation_id = c.id ${OPT_OUT}
       join phone_numbers n on n.phone_number_id = c.phone_number_id
      cross join lateral (
        select cast(count(*) filter (where k.direction = 'inbound') as integer) as inbound,
               cast(count(*) filter (where k.direction = 'outbound') as integer) as outbound
          from (${newestMessages(MAX_COUNTED_MESSAGES)}) as k) as counted
      cross join lateral (${LAST_WRITTEN}) as written`,
    { wabaId, conversationId },
  );
}
