import type { Database } from './database.ts';
import { type MessageMedia, mediaColumns } from './message-media.ts';
import { query } from './sql.ts';

export type ConversationMessage = {
  id: string;
  /** Null while upstream has not accepted an outbound message. */
  upstreamId: string | null;
  conversationId: string;
  phoneNumberId: string;
  direction: 'inbound' | 'outbound';
  type: string;
  sentAt: Date | null;
  createdAt: Date;
  /** The upstream message object as JSON text. */
  content: string;
  contextId: string | null;
  targetId: string | null;
  status: string | null;
  statusAt: Date | null;
} & MessageMedia;

export type MessagePage = { order: 'asc' | 'desc'; afterId: string | null; limit: number };

/**
 * Up to `limit` messages of a conversation by Message_Id, which is the order in which they came. A conversation that
 * was merged into another one answers as that one. Null: the WABA has no such conversation.
 */
export async function listConversationMessages(
  database: Database,
  wabaId: string,
  conversationId: string,
  { order, afterId, limit }: MessagePage,
): Promise<ConversationMessage[] | null> {
  const behind = afterId === null ? '' : `and p.id ${order === 'asc' ? '>' : '<'} cast(:afterId as bigint)`;
  const direction = order === 'asc' ? 'asc' : 'desc';
  // One statement, so that a merge under way cannot make the page look empty. The page is cut on ids alone, which
  // the index holds in order: anything more there, and PostgreSQL reads and sorts all of a long conversation.
  const rows = await query<{ [Name in keyof ConversationMessage]: ConversationMessage[Name] | null }>(
    database,
    `select m.id, m.upstream_id as "upstreamId", m.conversation_id as "conversationId",
            m.phone_number_id as "phoneNumberId", m.direction, m.type, m.sent_at as "sentAt",
            m.created_at as "createdAt", m.content, m.context_id as "contextId", m.target_id as "targetId",
            s.status, s.status_at as "statusAt", ${mediaColumns('d')}
       from (select coalesce(merged_into, id) as id from conversations
              where waba_id = :wabaId and id = :conversationId) as kept
       left join lateral (
         select p.id from messages p where p.conversation_id = kept.id ${behind}
          order by p.id ${direction} limit :limit
       ) as page on true
       left join messages m on m.id = page.id and m.waba_id = :wabaId
       left join message_states s on s.phone_number_id = m.phone_number_id
                                 and s.upstream_id = coalesce(m.upstream_id, 'local:' || m.id)
       left join media d on d.message_id = m.id and d.waba_id = m.waba_id
      order by m.id ${direction}`,
    { wabaId, conversationId, limit, ...(afterId === null ? {} : { afterId }) },
  );
  if (rows.length === 0) return null;
  return rows.filter((row): row is ConversationMessage => row.id !== null);
}
