import type { Database } from '../../../platform/postgres/database.ts';
import { query, queryOne, queryValue } from '../../../platform/postgres/sql.ts';
import type { MessageOrigin } from '../app-messages.ts';
import type { ShownState } from '../send/outbound-messages.ts';
import { SHOWN_STATE } from '../send/scheduled-messages.ts';
import { LAST_MESSAGE } from './last-message.ts';

/** Null means no restriction; `until` is exclusive. */
export type MessageFilter = {
  direction: 'inbound' | 'outbound' | null;
  type: string | null;
  since: Date | null;
  until: Date | null;
};

export type MessageWalk = { order: 'asc' | 'desc'; afterId: string | null; limit: number };

export type MessagePage = {
  messages: ConversationMessage[];
  hasMore: boolean;
  /** Where the next page begins: the last id that was looked at; null when there was none. */
  position: string | null;
};

/** What one request reads at most: messages that a filter passes over, and bytes of contents. */
const MAX_SCANNED = 10_000;
/** The largest page, and one row that tells whether there is another. */
const MAX_ROWS = 101;
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
/** More than any real message has. */
export const MAX_CONTENT_BYTES = 65_536;

const NO_FILTER: MessageFilter = { direction: null, type: null, since: null, until: null };

/**
 * Up to `limit` messages of a conversation by Message_Id, which is the order in which they came. A page may hold fewer
 * although there are more: when a filter passes over many, or contents are large. A conversation that was merged into
 * another one answers as that one. Null: the WABA has no such conversation.
 */
export async function listConversationMessages(
  database: Database,
  wabaId: string,
  conversationId: string,
  walk: MessageWalk,
  filter: MessageFilter = NO_FILTER,
): Promise<MessagePage | null> {
  const range = await findIdRange(database, wabaId, conversationId, filter);
  const rows = await readPage(database, wabaId, conversationId, { walk, range, filter });
  if (rows.length === 0) return null;
  const found = rows.filter((row): row is ConversationMessage => row.id !== null);
  // Contents beyond the bytes of a page come as null.
  const fitting = found.findIndex((row) => row.content === null);
  const messages = found.slice(0, fitting < 0 ? walk.limit : Math.min(fitting, walk.limit));
  const position = messages.at(-1)?.id ?? walk.afterId;
  if (found.length > messages.length) return { messages, hasMore: true, position };
  const scanEnd = await readScanEnd(database, wabaId, conversationId, { walk, range, filter });
  return { messages, hasMore: scanEnd !== null, position: scanEnd ?? position };
}

/** What was said last in each of these conversations, none of which is merged. A message that is larger than 64 KiB is left out. */
export async function listNewestMessages(
  database: Database,
  wabaId: string,
  conversationIds: readonly string[],
): Promise<ConversationMessage[]> {
  return await query<ConversationMessage>(
    database,
    `select ${MESSAGE_COLUMNS}, m.content
       from conversations c cross join lateral (${LAST_MESSAGE}) as newest
       join messages m on m.id = newest.id and m.waba_id = :wabaId
       ${MESSAGE_JOINS}
      where c.id = any (cast(:conversationIds as bigint[])) and octet_length(m.content) <= ${MAX_CONTENT_BYTES}`,
    { wabaId, conversationIds },
  );
}

type Selection = { walk: MessageWalk; range: IdRange; filter: MessageFilter };

async function readPage(
  database: Database,
  wabaId: string,
  conversationId: string,
  selection: Selection,
): Promise<{ [Name in keyof ConversationMessage]: ConversationMessage[Name] | null }[]> {
  const { walk, filter } = selection;
  const { order } = walk;
  const { scanned, bindings } = scanOf(selection);
  const wanted = [
    ...(filter.direction === null ? [] : ['p.direction = :direction']),
    ...(filter.type === null ? [] : ['p.type = :type']),
    ...(filter.since === null ? [] : ['p.created_at >= cast(:since as timestamptz)']),
    ...(filter.until === null ? [] : ['p.created_at < cast(:until as timestamptz)']),
  ].join(' and ');
  // One statement, so that a merge under way cannot make the page look empty. The page is cut on what the index
  // holds in order: anything more there, and PostgreSQL reads and sorts all of a long conversation. And by a number
  // that is known when the plan is made: for an unknown one it would prepare for a large part of the table.
  return await query(
    database,
    `select ${MESSAGE_COLUMNS},
            case when sum(octet_length(m.content)) over (order by m.id ${order}) - octet_length(m.content)
                      < ${MAX_PAGE_BYTES} then m.content end as content
       from (select coalesce(merged_into, id) as id from conversations
              where waba_id = :wabaId and id = :conversationId) as kept
       left join lateral (
         select p.id from (
           select p.id from (${scanned}) as p ${wanted === '' ? '' : `where ${wanted}`}
            order by p.id ${order} limit ${MAX_ROWS}) as p
          order by p.id ${order} limit :limit
       ) as page on true
       left join messages m on m.id = page.id and m.waba_id = :wabaId
       ${MESSAGE_JOINS}
      order by m.id ${order}`,
    { ...bindings, ...filter, wabaId, conversationId, limit: walk.limit + 1 },
  );
}

/** Over `kept`, from what the index holds. */
function scanOf({ walk: { order, afterId }, range }: Selection) {
  const behind = order === 'asc' ? '>' : '<';
  const conditions = [
    ...(afterId === null ? [] : [`and x.id ${behind} cast(:afterId as bigint)`]),
    ...(range.low === null ? [] : ['and x.id >= cast(:low as bigint)']),
    ...(range.high === null ? [] : ['and x.id < cast(:high as bigint)']),
  ];
  const scanned = `select x.id, x.direction, x.type, x.created_at from messages x
    where x.conversation_id = kept.id ${conditions.join(' ')} order by x.id ${order} limit ${MAX_SCANNED}`;
  return { scanned, bindings: { afterId, ...range } };
}

/** The last id that a page was looked for among when there may be more behind it; null when there is not. */
async function readScanEnd(
  database: Database,
  wabaId: string,
  conversationId: string,
  selection: Selection,
): Promise<string | null> {
  const { filter } = selection;
  if (filter.direction === null && filter.type === null) return null;
  const { scanned, bindings } = scanOf(selection);
  return await queryValue<string>(
    database,
    `select p.id from (select coalesce(merged_into, id) as id from conversations
                        where waba_id = :wabaId and id = :conversationId) as kept
      cross join lateral (select n.id from (${scanned}) as n offset ${MAX_SCANNED - 1}) as p`,
    { ...bindings, wabaId, conversationId },
  );
}

/** Message_Ids between which messages of a time lie; `low` inclusive, `high` exclusive, null: no bound. */
type IdRange = { low: string | null; high: string | null };

/**
 * Ids rise with time but for transactions that began before another and ended after it: none lasts longer than this,
 * so within the range the exact time still has to be compared.
 */
const DISORDER_SECONDS = 120;

/**
 * Where messages of a conversation that were stored from `since` on and before `until` lie, by bisection over the
 * index that the walk uses: an index by time would cost every message that is stored.
 */
async function findIdRange(
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

export type MessageMedia = {
  mediaState: 'pending' | 'stored' | 'failed' | 'expired' | null;
  mediaType: string | null;
  mimeType: string | null;
  caption: string | null;
  fileName: string | null;
  objectKey: string | null;
  sizeBytes: string | null;
  sha256: string | null;
  errorCode: string | null;
  errorMessage: string | null;
};

const MEDIA_COLUMNS = `d.state as "mediaState", d.media_type as "mediaType",
  coalesce(d.mime_type, d.served_type) as "mimeType", d.caption, d.file_name as "fileName", d.object_key as "objectKey",
  d.size_bytes as "sizeBytes", d.sha256, d.error_code as "errorCode", d.error_message as "errorMessage"`;

type ReceivedMedia = MessageMedia & { id: string; upstreamId: string };

/** Null when the message carries no media, or is not the WABA's. */
export async function findReceivedMedia(
  database: Database,
  wabaId: string,
  messageId: string,
): Promise<ReceivedMedia | null> {
  return await queryOne<ReceivedMedia>(
    database,
    `select m.id, coalesce(m.upstream_id, m.superseded_upstream_id) as "upstreamId", ${MEDIA_COLUMNS}
       from messages m join media d on d.message_id = m.id and d.waba_id = m.waba_id
      where m.waba_id = :wabaId and m.id = :messageId`,
    { wabaId, messageId },
  );
}

export type ConversationMessage = {
  id: string;
  /** Null while upstream has not accepted an outbound message. */
  upstreamId: string | null;
  /** The Message_Id of the real message that followed this placeholder. */
  supersededBy: string | null;
  conversationId: string;
  phoneNumberId: string;
  direction: 'inbound' | 'outbound';
  type: string;
  sentAt: Date | null;
  createdAt: Date;
  readAt: Date | null;
  content: string;
  contextId: string | null;
  repliedId: string | null;
  targetId: string | null;
  groupSender: string | null;
  status: string | null;
  statusAt: Date | null;
  sendState: ShownState | null;
  /** Of a scheduled message, also when it was sent. */
  sendAt: Date | null;
  notAfter: Date | null;
  apiKeyId: string | null;
  /** Where the business wrote it; null: it came or was sent through the platform. */
  origin: MessageOrigin | null;
} & MessageMedia;

export const MESSAGE_COLUMNS = `m.id, coalesce(o.upstream_id, m.upstream_id, m.superseded_upstream_id) as "upstreamId", n.id as "supersededBy",
  m.conversation_id as "conversationId", m.phone_number_id as "phoneNumberId", m.direction, m.type,
  m.sent_at as "sentAt", m.created_at as "createdAt", m.read_at as "readAt", m.context_id as "contextId", r.id as "repliedId",
  m.target_id as "targetId", m.group_sender as "groupSender", s.status, s.status_at as "statusAt", ${SHOWN_STATE} as "sendState", sm.send_at as "sendAt", sm.not_after as "notAfter", o.api_key_id as "apiKeyId", m.origin, ${MEDIA_COLUMNS}`;

/** For MESSAGE_COLUMNS, over `messages m`: at most one row of each. */
export const MESSAGE_JOINS = `
  left join outbound_messages o on o.message_id = m.id
  left join scheduled_messages sm on sm.message_id = o.message_id
  left join message_states s on s.phone_number_id = m.phone_number_id
                            and s.upstream_id = coalesce(o.upstream_id, m.upstream_id, 'local:' || m.id)
  left join messages r on r.phone_number_id = m.phone_number_id and r.upstream_id = m.context_id
                      and r.waba_id = m.waba_id
  left join messages n on n.phone_number_id = m.phone_number_id and n.upstream_id = m.superseded_upstream_id
                      and n.waba_id = m.waba_id
  left join media d on d.message_id = m.id and d.waba_id = m.waba_id`;
