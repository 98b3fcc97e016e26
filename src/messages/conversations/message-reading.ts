import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** What marking a message as read needs. */
export type ReadableMessage = {
  direction: 'inbound' | 'outbound';
  phoneNumberId: string;
  /** Never null for an inbound message. */
  upstreamId: string | null;
};

/** A message of a WABA; null when there is none such. */
export async function findReadableMessage(
  database: Database,
  wabaId: string,
  messageId: string,
): Promise<ReadableMessage | null> {
  const [row] = await query<ReadableMessage>(
    database,
    `select direction, phone_number_id as "phoneNumberId", coalesce(upstream_id, superseded_upstream_id) as "upstreamId" from messages
      where id = ? and waba_id = ?`,
    [messageId, wabaId],
  );
  return row ?? null;
}

/** Notes that an inbound message was marked as read, unless it was before; returns when. */
export async function markMessageRead(database: Database, wabaId: string, messageId: string): Promise<Date> {
  const [row] = await query<{ readAt: Date }>(
    database,
    `update messages set read_at = coalesce(read_at, now())
      where id = ? and waba_id = ? and direction = 'inbound' returning read_at as "readAt"`,
    [messageId, wabaId],
  );
  if (row === undefined) throw new Error('the message that was read is missing');
  return row.readAt;
}
