import { columnsOf, textArray } from '../../platform/postgres/arrays.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';
import { erasedName, type NewInboundMessage, wasErased } from './messages.ts';

export type MessageOrigin = 'business_app' | 'history' | 'other_responder';

type NewAppMessage = Omit<NewInboundMessage, 'placeholder' | 'groupSender'> & {
  direction: 'inbound' | 'outbound';
  /** Null: a call. */
  origin: MessageOrigin | null;
};

/** Messages that are there and those that were erased stay as they are. */
export async function insertAppMessages(trx: Transaction, messages: readonly NewAppMessage[]): Promise<void> {
  await execute(
    trx,
    `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content, context_id,
                           target_id, sent_at, origin)
     select g.waba_id, g.phone_number_id, g.conversation_id, g.direction, g.upstream_id, g.type, g.content, g.context_id,
            g.target_id, g.sent_at, g.origin
       from unnest(:wabaId::text[], :phoneNumberId::text[], :conversationId::bigint[], :upstreamId::text[], :type::text[], :contents::text[], :contextId::text[], :targetId::text[],
                   :sentAt::timestamptz[], :direction::text[], :origin::text[], :ms::text[]) with ordinality
         as g (waba_id, phone_number_id, conversation_id, upstream_id, type, content, context_id, target_id, sent_at,
               direction, origin, name, n)
      where not ${wasErased('g.name')}
      order by g.n
     on conflict (phone_number_id, upstream_id) do nothing`,
    {
      ...columnsOf(messages, 'wabaId', 'phoneNumberId', 'conversationId', 'upstreamId', 'type'),
      contents: textArray(messages.map((m) => m.content)),
      ...columnsOf(messages, 'contextId', 'targetId', 'sentAt', 'direction', 'origin'),
      ms: messages.map((m) => erasedName(m, m.upstreamId)),
    },
  );
}

/** Puts messages with files in the place of those that history reported without them. */
export async function completePlaceholders(
  trx: Transaction,
  messages: readonly { phoneNumberId: string; upstreamId: string; type: string; content: string }[],
): Promise<void> {
  if (messages.length === 0) return;
  await execute(
    trx,
    `update messages m set type = g.type, content = g.content
       from unnest(:phoneNumberId::text[], :upstreamId::text[], :type::text[], :contents::text[]) as g (phone_number_id, upstream_id, type, content)
      where m.phone_number_id = g.phone_number_id and m.upstream_id = g.upstream_id
        and m.origin = 'history' and m.type = 'media_placeholder'`,
    {
      ...columnsOf(messages, 'phoneNumberId', 'upstreamId', 'type'),
      contents: textArray(messages.map(({ content }) => content)),
    },
  );
}

/** What upstream has reported since the number came to the platform stays. */
export async function noteFormerStates(
  trx: Transaction,
  states: readonly { phoneNumberId: string; upstreamId: string; status: string; at: Date | null }[],
): Promise<void> {
  if (states.length === 0) return;
  await execute(
    trx,
    `insert into message_states (phone_number_id, upstream_id, status, status_at)
     select g.* from unnest(:phoneNumberId::text[], :upstreamId::text[], :status::text[], :at::timestamptz[])
              as g (phone_number_id, upstream_id, status, status_at)
       join messages m on m.phone_number_id = g.phone_number_id and m.upstream_id = g.upstream_id
     on conflict (phone_number_id, upstream_id) do nothing`,
    columnsOf(states, 'phoneNumberId', 'upstreamId', 'status', 'at'),
  );
}
