import { laneOf } from '../domain/ordering-key.ts';
import type { Database } from './database.ts';
import { query } from './sql.ts';

export type PaymentEvent = {
  uuid: string;
  phoneNumberId: string;
  createdAt: Date;
  /** The body of the event, JSON. */
  body: Buffer;
};

/** The newest events that may be about a payment, the oldest first: compare their `data.reference_id`. */
export async function listPaymentEvents(
  database: Database,
  wabaId: string,
  referenceId: string,
  limit: number,
): Promise<PaymentEvent[]> {
  const rows = await query<PaymentEvent>(
    database,
    `select id as uuid, phone_number_id as "phoneNumberId", created_at as "createdAt", body from events
      where waba_id = ? and lane = ? and event_type = 'payment' and body is not null order by id desc limit ?`,
    [wabaId, laneOf(referenceId), limit],
  );
  return rows.reverse();
}

/** The message that asked for a payment. */
export type OrderMessage = {
  messageId: string;
  conversationId: string;
  phoneNumberId: string;
  configuration: string | null;
};

/** The newest messages that asked for a payment with this reference id, one of each number, the newest last. */
export async function listOrderMessages(
  database: Database,
  wabaId: string,
  referenceId: string,
): Promise<OrderMessage[]> {
  return await query<OrderMessage>(
    database,
    `select * from (
       select distinct on (o.phone_number_id) o.message_id as "messageId", m.conversation_id as "conversationId",
              o.phone_number_id as "phoneNumberId", o.payment_configuration as configuration
         from outbound_messages o join messages m on m.id = o.message_id
        where o.waba_id = ? and o.payment_reference = ?
        order by o.phone_number_id, o.message_id desc) newest
      order by "messageId"`,
    [wabaId, referenceId],
  );
}
