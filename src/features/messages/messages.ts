import { columnsOf, textArray } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryColumn } from '../../platform/postgres/sql.ts';
import { mergeContacts } from '../customers/customers.ts';

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
  groupSender: string | null;
};

/**
 * Sent at once, as one statement. A real message takes over the upstream id of the placeholder that came first, and what is
 * ours that of a copy of another responder's: it is listed at its own place, because a reader of the conversation is past the first one's. The join waits for the update, so that the id is free.
 */
export async function insertInboundMessages(
  trx: Transaction,
  messages: readonly NewInboundMessage[],
): Promise<void> {
  if (messages.length === 0) return;
  await execute(
    trx,
    `with given as (select * from unnest(:wabaId::text[], :phoneNumberId::text[], :conversationId::bigint[], :upstreamId::text[], :type::text[], :placeholder::boolean[], :contents::text[], :contextId::text[],
                   :targetId::text[], :sentAt::timestamptz[], :groupSender::text[]) with ordinality
         as m (waba_id, phone_number_id, conversation_id, upstream_id, type, placeholder, content, context_id,
               target_id, sent_at, group_sender, n)
     ), superseded as (
       update messages m set upstream_id = null, superseded_upstream_id = g.upstream_id
         from given g
        where m.phone_number_id = g.phone_number_id and m.upstream_id = g.upstream_id
          and (m.placeholder and not g.placeholder or m.origin = 'other_responder')
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
    {
      ...columnsOf(
        messages,
        'wabaId',
        'phoneNumberId',
        'conversationId',
        'upstreamId',
        'type',
        'placeholder',
      ),
      contents: textArray(messages.map((m) => m.content)),
      ...columnsOf(messages, 'contextId', 'targetId', 'sentAt', 'groupSender'),
    },
  );
}

/** Message_Ids keyed by `messageKey`; of the WhatsApp Business app alone, or of all messages. */
export async function findMessageIds(
  trx: Transaction,
  messages: readonly { phoneNumberId: string; upstreamId: string }[],
  from: 'anywhere' | 'app' = 'anywhere',
): Promise<Map<string, string>> {
  const rows = await query<{ id: string; phoneNumberId: string; upstreamId: string }>(
    trx,
    `select id, phone_number_id as "phoneNumberId", upstream_id as "upstreamId" from messages
      where (phone_number_id, upstream_id) in (select * from unnest(:phoneNumberId::text[], :upstreamId::text[]))
            ${from === 'app' ? 'and origin is not null' : ''}`,
    columnsOf(messages, 'phoneNumberId', 'upstreamId'),
  );
  return new Map(rows.map((row) => [messageKey(row.phoneNumberId, row.upstreamId), row.id]));
}

export function messageKey(phoneNumberId: string, upstreamId: string): string {
  return `${phoneNumberId} ${upstreamId}`;
}

/** By upstream's id or our mark: the hash of this name is kept when the message is erased. */
export function erasedName({ phoneNumberId }: { phoneNumberId: string }, id: string): string {
  return `${phoneNumberId} ${id}`;
}

/** SQL: the hash of an erased name. */
export function erasedKey(name: string): string {
  return `sha256((select salt from erasure_salt) || convert_to(${name}, 'UTF8'))`;
}

/** SQL: whether what has this name was erased; asked by its key for each, however many there are. */
export function wasErased(name: string): string {
  return `exists (select from erased_items e where e.key = ${erasedKey(name)} offset 0)`;
}

/** For a message that will never have an id of upstream's: in its `failed` status and event. */
export function localMessageId(messageId: string): string {
  return `local:${messageId}`;
}

/** Those of these numbers to which customers wrote in the last days: another responder joined them. */
export async function numbersWithMessages(
  database: Database,
  numbers: readonly { wabaId: string; phoneNumberId: string }[],
  days: number,
): Promise<Set<string>> {
  if (numbers.length === 0) return new Set();
  const found = await queryColumn<string>(
    database,
    `select n.number from unnest(:wabaIds::text[], :numbers::text[]) as n (waba, number)
      where exists (select from messages m
                     where m.waba_id = n.waba and m.created_at > now() - :days * interval '1 day'
                       and m.phone_number_id = n.number and m.direction = 'inbound' and m.origin is null
                       and m.type <> 'call')`,
    {
      wabaIds: numbers.map(({ wabaId }) => wabaId),
      numbers: numbers.map(({ phoneNumberId }) => phoneNumberId),
      days,
    },
  );
  return new Set(found);
}

/** `kept` takes over the conversations of `dropped` with their messages; locked first, so that a send that is under way leaves none behind. */
export async function mergeCustomers(
  trx: Transaction,
  wabaId: string,
  keptId: string,
  droppedId: string,
): Promise<void> {
  const moved = 'update messages set conversation_id = :kept where conversation_id = :dropped';
  for (const merged of await mergeContacts(trx, wabaId, keptId, droppedId)) await execute(trx, moved, merged);
}
