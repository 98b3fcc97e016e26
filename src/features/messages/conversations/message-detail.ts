import type { Database } from '../../../platform/postgres/database.ts';
import { query, queryOne, queryOnly, queryValue } from '../../../platform/postgres/sql.ts';
import { type ConversationMessage, MESSAGE_COLUMNS, MESSAGE_JOINS } from './message-list.ts';

export type MessageDetail = ConversationMessage & {
  attempts: number | null;
  upstreamStatus: string | null;
  waId: string | null;
  sendError: string | null;
};

/** `content` is the upstream status object as JSON text. */
export type MessageStatus = {
  status: string;
  at: Date | null;
  receivedAt: Date;
  content: string;
  /** A member of a group; empty: the status is about the message as a whole. */
  participant: string;
};

export async function findMessage(
  database: Database,
  wabaId: string,
  messageId: string,
): Promise<MessageDetail | null> {
  return await queryOne<MessageDetail>(
    database,
    `select ${MESSAGE_COLUMNS}, m.content, o.attempts, o.upstream_status as "upstreamStatus", o.wa_id as "waId",
            o.error as "sendError"
       from messages m ${MESSAGE_JOINS}
      where m.id = :messageId and m.waba_id = :wabaId`,
    { messageId, wabaId },
  );
}

/** In the order in which they came, and within a batch in that of a message's life. */
export async function listMessageStatuses(
  database: Database,
  { phoneNumberId, upstreamId }: { phoneNumberId: string; upstreamId: string },
  limit: number,
): Promise<MessageStatus[]> {
  return await query<MessageStatus>(
    database,
    `select status, at, received_at as "receivedAt", content, participant from message_statuses
      where phone_number_id = :phoneNumberId and upstream_id = :upstreamId
      order by received_at, at, array_position(array['sent', 'delivered', 'read', 'played', 'failed'], status)
      limit :limit`,
    { phoneNumberId, upstreamId, limit },
  );
}

type ReadableMessage = {
  direction: 'inbound' | 'outbound';
  phoneNumberId: string;
  /** Never null for an inbound message. */
  upstreamId: string | null;
};

export async function findReadableMessage(
  database: Database,
  wabaId: string,
  messageId: string,
): Promise<ReadableMessage | null> {
  return await queryOne<ReadableMessage>(
    database,
    `select direction, phone_number_id as "phoneNumberId", coalesce(upstream_id, superseded_upstream_id) as "upstreamId" from messages
      where id = :messageId and waba_id = :wabaId`,
    { messageId, wabaId },
  );
}

export async function findInboundByUpstreamId(
  database: Database,
  wabaId: string,
  { phoneNumberId, upstreamId }: { phoneNumberId: string; upstreamId: string },
): Promise<string | null> {
  return await queryValue<string>(
    database,
    `select id from messages
      where phone_number_id = :phoneNumberId and upstream_id = :upstreamId and waba_id = :wabaId and direction = 'inbound'`,
    { phoneNumberId, upstreamId, wabaId },
  );
}

/** Returns when it was first marked. */
export async function markMessageRead(database: Database, wabaId: string, messageId: string): Promise<Date> {
  const { readAt } = await queryOnly<{ readAt: Date }>(
    database,
    `update messages set read_at = coalesce(read_at, now())
      where id = :messageId and waba_id = :wabaId and direction = 'inbound' returning read_at as "readAt"`,
    { messageId, wabaId },
  );
  return readAt;
}
