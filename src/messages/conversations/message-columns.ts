import type { SendState } from '../send/outbound-messages.ts';
import { type MessageMedia, mediaColumns } from './media-columns.ts';

/** A message as the API shows it. */
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
  /** When the business marked an inbound message as read. */
  readAt: Date | null;
  /** The upstream message object as JSON text. */
  content: string;
  contextId: string | null;
  /** The Message_Id of the message with the id `contextId`; null when there is none. */
  repliedId: string | null;
  targetId: string | null;
  /** Who of a group wrote it; null outside of groups. */
  groupSender: string | null;
  /** The state that the statuses of an outbound message lead to. */
  status: string | null;
  statusAt: Date | null;
  /** How far the sending is; null for inbound messages. */
  sendState: SendState | null;
} & MessageMedia;

/** The select list of ConversationMessage but for `content`, over MESSAGE_JOINS. */
export const MESSAGE_COLUMNS = `m.id, coalesce(o.upstream_id, m.upstream_id, m.superseded_upstream_id) as "upstreamId", n.id as "supersededBy",
  m.conversation_id as "conversationId", m.phone_number_id as "phoneNumberId", m.direction, m.type,
  m.sent_at as "sentAt", m.created_at as "createdAt", m.read_at as "readAt", m.context_id as "contextId", r.id as "repliedId",
  m.target_id as "targetId", m.group_sender as "groupSender", s.status, s.status_at as "statusAt", o.state as "sendState", ${mediaColumns('d')}`;

/** What MESSAGE_COLUMNS needs besides `messages m`: at most one row of each. */
export const MESSAGE_JOINS = `
  left join outbound_messages o on o.message_id = m.id
  left join message_states s on s.phone_number_id = m.phone_number_id
                            and s.upstream_id = coalesce(o.upstream_id, m.upstream_id, 'local:' || m.id)
  left join messages r on r.phone_number_id = m.phone_number_id and r.upstream_id = m.context_id
                      and r.waba_id = m.waba_id
  left join messages n on n.phone_number_id = m.phone_number_id and n.upstream_id = m.superseded_upstream_id
                      and n.waba_id = m.waba_id
  left join media d on d.message_id = m.id and d.waba_id = m.waba_id`;
