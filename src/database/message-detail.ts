import type { ConversationMessage } from './conversation-messages.ts';
import type { Database } from './database.ts';
import { mediaColumns } from './message-media.ts';
import type { SendState } from './outbound-messages.ts';
import { query } from './sql.ts';

export type MessageDetail = ConversationMessage & {
  /** Null for inbound messages. */
  sendState: SendState | null;
  attempts: number | null;
  upstreamStatus: string | null;
  /** JSON text. */
  sendError: string | null;
};

/** A status as it was stored; `content` is the upstream status object as JSON text. */
export type MessageStatus = { status: string; at: Date | null; receivedAt: Date; content: string };

/** One message of a WABA, inbound or outbound; null when there is none such. */
export async function findMessage(
  database: Database,
  wabaId: string,
  messageId: string,
): Promise<MessageDetail | null> {
  const [row] = await query<MessageDetail>(
    database,
    `select m.id, coalesce(o.upstream_id, m.upstream_id) as "upstreamId",
            m.conversation_id as "conversationId", m.phone_number_id as "phoneNumberId", m.direction, m.type,
            m.sent_at as "sentAt", m.created_at as "createdAt", m.content, m.context_id as "contextId",
            m.target_id as "targetId", s.status, s.status_at as "statusAt", o.state as "sendState", o.attempts,
            o.upstream_status as "upstreamStatus", o.error as "sendError", ${mediaColumns('d')}
       from messages m
       left join outbound_messages o on o.message_id = m.id
       left join message_states s on s.phone_number_id = m.phone_number_id
                                 and s.upstream_id = coalesce(o.upstream_id, m.upstream_id, 'local:' || m.id)
       left join media d on d.message_id = m.id and d.waba_id = m.waba_id
      where m.id = ? and m.waba_id = ?`,
    [messageId, wabaId],
  );
  return row ?? null;
}

/** The statuses of a message in the order in which they came. */
export async function listMessageStatuses(
  database: Database,
  { phoneNumberId, upstreamId }: { phoneNumberId: string; upstreamId: string },
  limit: number,
): Promise<MessageStatus[]> {
  return await query<MessageStatus>(
    database,
    `select status, at, received_at as "receivedAt", content from message_statuses
      where phone_number_id = ? and upstream_id = ? order by received_at, at limit ?`,
    [phoneNumberId, upstreamId, limit],
  );
}
