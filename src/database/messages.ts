import { textArray } from './array-parameters.ts';
import type { Transaction } from './database.ts';
import { execute, query } from './sql.ts';

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
};

/**
 * Stores inbound messages, in one statement that is sent at once. A real message takes the place of the placeholder
 * that upstream sent first under the same id.
 */
export async function insertInboundMessages(
  trx: Transaction,
  messages: readonly NewInboundMessage[],
): Promise<void> {
  if (messages.length === 0) return;
  await execute(
    trx,
    `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, placeholder,
                           content, context_id, target_id, sent_at)
     select waba_id, phone_number_id, conversation_id, 'inbound', upstream_id, type, placeholder,
            content, context_id, target_id, sent_at
       from unnest(?::text[], ?::text[], ?::bigint[], ?::text[], ?::text[], ?::boolean[], ?::text[], ?::text[],
                   ?::text[], ?::timestamptz[]) with ordinality
         as m (waba_id, phone_number_id, conversation_id, upstream_id, type, placeholder, content, context_id,
               target_id, sent_at, n)
      order by n
     on conflict (phone_number_id, upstream_id) do update
        set type = excluded.type, placeholder = false, content = excluded.content,
            context_id = excluded.context_id, target_id = excluded.target_id, sent_at = excluded.sent_at
      where messages.placeholder and not excluded.placeholder`,
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
