import type { Transaction } from '../platform/postgres/database.ts';
import { execute, query, textArray } from '../platform/postgres/sql.ts';

export type NewInboundMessage = {
  wabaId: string;
  phoneNumberId: string;
  conversationId: string;
  upstreamId: string;
  type: string;
  placeholder: boolean;
  content: string;
  contextId: string | null;
  targetId: string | null;
  sentAt: Date | null;
  /** Who of a group wrote it; null outside of groups. */
  groupSender: string | null;
};

/**
 * Stores inbound messages, in one statement that is sent at once. A real message takes over the upstream id of the
 * placeholder that came first: it is listed at its own place, because a reader of the conversation is past the
 * placeholder's. The join waits for the update, so that the id is free.
 */
export async function insertInboundMessages(
  trx: Transaction,
  messages: readonly NewInboundMessage[],
): Promise<void> {
  if (messages.length === 0) return;
  await execute(
    trx,
    `with given as (select * from unnest(?::text[], ?::text[], ?::bigint[], ?::text[], ?::text[], ?::boolean[], ?::text[], ?::text[],
                   ?::text[], ?::timestamptz[], ?::text[]) with ordinality
         as m (waba_id, phone_number_id, conversation_id, upstream_id, type, placeholder, content, context_id,
               target_id, sent_at, group_sender, n)
     ), superseded as (
       update messages m set upstream_id = null, superseded_upstream_id = g.upstream_id
         from given g
        where not g.placeholder and m.phone_number_id = g.phone_number_id and m.upstream_id = g.upstream_id
          and m.placeholder
       returning m.phone_number_id, m.superseded_upstream_id as upstream_id
     )
     insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, placeholder,
                           content, context_id, target_id, sent_at, group_sender)
     select g.waba_id, g.phone_number_id, g.conversation_id, 'inbound', g.upstream_id, g.type, g.placeholder,
            g.content, g.context_id, g.target_id, g.sent_at, g.group_sender
       from given g
       left join superseded s on s.phone_number_id = g.phone_number_id and s.upstream_id = g.upstream_id
      order by g.n
     on conflict (phone_number_id, upstream_id) do nothing`,
    [
      messages.map((m) => m.wabaId),
      messages.map((m) => m.phoneNumberId),
      messages.map((m) => m.conversationId),
      messages.map((m) => m.upstreamId),
      messages.map((m) => m.type),
      messages.map((m) => m.placeholder),
      textArray(messages.map((m) => m.content)),
      messages.map((m) => m.contextId),
      messages.map((m) => m.targetId),
      messages.map((m) => m.sentAt),
      messages.map((m) => m.groupSender),
    ],
  );
}

/** The Message_Ids of messages, keyed by `messageKey`. */
export async function findMessageIds(
  trx: Transaction,
  messages: readonly { phoneNumberId: string; upstreamId: string }[],
): Promise<Map<string, string>> {
  const rows = await query<{ id: string; phone_number_id: string; upstream_id: string }>(
    trx,
    `select id, phone_number_id, upstream_id from messages
      where (phone_number_id, upstream_id) in (select * from unnest(?::text[], ?::text[]))`,
    [messages.map((m) => m.phoneNumberId), messages.map((m) => m.upstreamId)],
  );
  return new Map(rows.map((row) => [messageKey(row.phone_number_id, row.upstream_id), row.id]));
}

/** The key under which `findMessageIds` returns a message's id. */
export function messageKey(phoneNumberId: string, upstreamId: string): string {
  return `${phoneNumberId} ${upstreamId}`;
}

/** The name of a message, by its upstream id or its mark, of which the hash is kept when it is erased. */
export function erasedName({ phoneNumberId }: { phoneNumberId: string }, id: string): string {
  return `${phoneNumberId} ${id}`;
}

type NewStatus = {
  phoneNumberId: string;
  upstreamId: string;
  status: string;
  participant: string | null;
  at: Date | null;
  content: string;
};

export type MessageState = { phoneNumberId: string; upstreamId: string; status: string; at: Date | null };

type StatusSubject = Pick<NewStatus, 'phoneNumberId' | 'upstreamId'>;

/** The present states of the messages that statuses are about, locked until the transaction ends. */
export async function lockMessageStates(
  trx: Transaction,
  statuses: readonly StatusSubject[],
): Promise<MessageState[]> {
  if (statuses.length === 0) return [];
  return await query<MessageState>(
    trx,
    `select phone_number_id as "phoneNumberId", upstream_id as "upstreamId", status, status_at as "at"
       from message_states where (phone_number_id, upstream_id) in (select * from unnest(?::text[], ?::text[]))
        for update`,
    [statuses.map((s) => s.phoneNumberId), statuses.map((s) => s.upstreamId)],
  );
}

/**
 * Records statuses and moves the state of their messages forward, never back. The message
 * need not be known: state is kept under the upstream id and joined when the message is read. A message whose
 * sending got no answer is recognized by its mark. When the locked states are given, everything but what marks lead to
 * is sent at once.
 */
export async function recordStatuses(
  trx: Transaction,
  statuses: readonly NewStatus[],
  current?: readonly MessageState[],
): Promise<void> {
  if (statuses.length === 0) return;
  const after = statesAfter(statuses, current ?? (await lockMessageStates(trx, statuses)));
  await Promise.all([
    execute(
      trx,
      `insert into message_statuses (phone_number_id, upstream_id, status, participant, at, content)
       select * from unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::timestamptz[], ?::text[])
       on conflict do nothing`,
      [
        statuses.map((s) => s.phoneNumberId),
        statuses.map((s) => s.upstreamId),
        statuses.map((s) => s.status),
        statuses.map((s) => s.participant ?? ''),
        statuses.map((s) => s.at),
        statuses.map((s) => s.content),
      ],
    ),
    execute(
      trx,
      `insert into message_states (phone_number_id, upstream_id, status, status_at)
       select * from unnest(?::text[], ?::text[], ?::text[], ?::timestamptz[])
       on conflict (phone_number_id, upstream_id) do update
          set status = excluded.status, status_at = excluded.status_at
        where message_states.status <> excluded.status`,
      [
        after.map((s) => s.phoneNumberId),
        after.map((s) => s.upstreamId),
        after.map((s) => s.status),
        after.map((s) => s.at),
      ],
    ),
    acceptByStatuses(trx, statuses),
  ]);
}

function statesAfter(statuses: readonly NewStatus[], current: readonly MessageState[]): MessageState[] {
  const states = new Map(current.map((state) => [`${state.phoneNumberId} ${state.upstreamId}`, state]));
  for (const { phoneNumberId, upstreamId, status, participant, at } of statuses) {
    // The others of the group may have it: upstream reports the failure of a whole message without a participant.
    if (participant !== null && status === 'failed') continue;
    const key = `${phoneNumberId} ${upstreamId}`;
    const before = states.get(key);
    const after = nextStatus(before?.status ?? null, status);
    if (after !== before?.status) states.set(key, { phoneNumberId, upstreamId, status: after, at });
  }
  return [...states.values()];
}

const RANKS: ReadonlyMap<string, number> = new Map([
  ['accepted', 0],
  ['sent', 1],
  ['delivered', 2],
  ['read', 3],
  ['played', 4],
]);
const SENT_RANK = 1;

/**
 * The state of an outbound message after one more status. Statuses come late, twice and in any order: the state only
 * moves up sent → delivered → read → played. `failed` is final and can only follow accepted or sent. A status we do
 * not know sets the state where there is none and gives way to any that we know.
 */
export function nextStatus(current: string | null, incoming: string): string {
  if (current === null) return incoming;
  if (current === 'failed') return current;
  const currentRank = RANKS.get(current);
  if (incoming === 'failed')
    return currentRank === undefined || currentRank <= SENT_RANK ? incoming : current;
  const incomingRank = RANKS.get(incoming);
  if (incomingRank === undefined) return current;
  return currentRank === undefined || incomingRank > currentRank ? incoming : current;
}

const MAX_ID = 2n ** 63n - 1n;

type MarkedStatus = { phoneNumberId: string; upstreamId: string; content: string };

/**
 * A status that carries our mark proves that upstream has the message: ends what is known of its sending with that,
 * also when the request got no answer, or when another attempt was about to be made.
 */
async function acceptByStatuses(trx: Transaction, statuses: readonly MarkedStatus[]): Promise<void> {
  const marked = new Map<string, MarkedStatus>();
  for (const status of statuses) {
    const messageId = markedMessageId(status.content);
    if (messageId !== null && BigInt(messageId) <= MAX_ID) marked.set(messageId, status);
  }
  if (marked.size === 0) return;
  const accepted = await query<{ messageId: string }>(
    trx,
    `update outbound_messages o
        set state = 'accepted', upstream_id = g.upstream_id, error = null, sending_until = null, finished_at = now()
       from unnest(?::bigint[], ?::text[], ?::text[]) as g (message_id, phone_number_id, upstream_id)
      where o.message_id = g.message_id and o.phone_number_id = g.phone_number_id
        and o.state in ('queued', 'sending', 'unknown') and o.attempts > 0
     returning o.message_id as "messageId"`,
    [
      [...marked.keys()],
      [...marked.values()].map((status) => status.phoneNumberId),
      [...marked.values()].map((status) => status.upstreamId),
    ],
  );
  if (accepted.length === 0) return;
  const ids = accepted.map((row) => row.messageId);
  await query(
    trx,
    `update messages m
        set sent_at = coalesce(sent_at, now()), upstream_id = o.upstream_id
       from outbound_messages o
      where m.id = any (?::bigint[]) and o.message_id = m.id and m.upstream_id is null
        and not exists (select 1 from messages x
                         where x.phone_number_id = m.phone_number_id and x.upstream_id = o.upstream_id)`,
    [ids],
  );
  for (const id of ids) trx.notify('heliograph_sends', id);
}

const PREFIX = 'heliograph:';
const IN_STATUS = /"biz_opaque_callback_data"\s*:\s*"heliograph:([1-9]\d{0,18})"/;

/**
 * The `biz_opaque_callback_data` of a message whose sender gave none. Upstream repeats it in each status, which tells
 * of a send that got no answer whether it went out.
 */
export function sendMarker(messageId: string): string {
  return PREFIX + messageId;
}

/** The Message_Id in the JSON text of a status that carries our mark; null for any other. */
export function markedMessageId(statusJson: string): string | null {
  return IN_STATUS.exec(statusJson)?.[1] ?? null;
}

/** The id under which a message is known that will never have one of upstream's: in its `failed` status and event. */
export function localMessageId(messageId: string): string {
  return `local:${messageId}`;
}
