import type { Transaction } from '../platform/postgres/database.ts';
import { execute, textArray } from '../platform/postgres/sql.ts';
import { erasedName } from './messages.ts';

/** A message that the business wrote in the WhatsApp Business app. */
export type NewAppMessage = {
  wabaId: string;
  phoneNumberId: string;
  conversationId: string;
  upstreamId: string;
  type: string;
  /** The upstream message object as JSON text. */
  content: string;
  contextId: string | null;
  targetId: string | null;
  sentAt: Date | null;
};

/** Stores messages of the business that were not sent through us, but for those that are there and those that were erased. */
export async function insertAppMessages(trx: Transaction, messages: readonly NewAppMessage[]): Promise<void> {
  await execute(
    trx,
    `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content, context_id,
                           target_id, sent_at, origin)
     select g.waba_id, g.phone_number_id, g.conversation_id, 'outbound', g.upstream_id, g.type, g.content, g.context_id,
            g.target_id, g.sent_at, 'business_app'
       from unnest(?::text[], ?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[],
                   ?::timestamptz[], ?::text[]) with ordinality
         as g (waba_id, phone_number_id, conversation_id, upstream_id, type, content, context_id, target_id, sent_at,
               name, n)
      where not exists (select from erased_items e
                         where e.key = sha256((select salt from erasure_salt) || convert_to(g.name, 'UTF8')) offset 0)
      order by g.n
     on conflict (phone_number_id, upstream_id) do nothing`,
    [
      messages.map((m) => m.wabaId),
      messages.map((m) => m.phoneNumberId),
      messages.map((m) => m.conversationId),
      messages.map((m) => m.upstreamId),
      messages.map((m) => m.type),
      textArray(messages.map((m) => m.content)),
      messages.map((m) => m.contextId),
      messages.map((m) => m.targetId),
      messages.map((m) => m.sentAt),
      messages.map((m) => erasedName(m, m.upstreamId)),
    ],
  );
}
