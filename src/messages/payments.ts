import { laneOf } from '../deliveries/envelope.ts';
import type { Database, Transaction } from '../platform/postgres/database.ts';
import { execute, query, textArray } from '../platform/postgres/sql.ts';

/** One report of a payment: its event, whose `data` is kept for longer than events are. */
export type PaymentReport = {
  eventUuid: string;
  phoneNumberId: string;
  eventId: string;
  createdAt: Date;
  /** JSON. */
  data: string;
};

/** A report that is stored with its event. */
export type NewPaymentReport = {
  eventUuid: string;
  wabaId: string;
  phoneNumberId: string;
  lane: string;
  eventId: string;
  data: string;
};

/** Keeps reports of payments, in one statement. */
export async function insertPaymentReports(
  trx: Transaction,
  reports: readonly NewPaymentReport[],
): Promise<void> {
  if (reports.length === 0) return;
  await execute(
    trx,
    `insert into payment_reports (event_uuid, waba_id, phone_number_id, lane, event_id, data)
     select * from unnest(?::uuid[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[])`,
    [
      reports.map((report) => report.eventUuid),
      reports.map((report) => report.wabaId),
      reports.map((report) => report.phoneNumberId),
      reports.map((report) => report.lane),
      reports.map((report) => report.eventId),
      textArray(reports.map((report) => report.data)),
    ],
  );
}

/** The newest reports that may be about a payment, the oldest first: compare their `reference_id`. */
export async function listPaymentReports(
  database: Database,
  wabaId: string,
  referenceId: string,
  limit: number,
): Promise<PaymentReport[]> {
  const rows = await query<PaymentReport>(
    database,
    `select event_uuid as "eventUuid", phone_number_id as "phoneNumberId", event_id as "eventId",
            created_at as "createdAt", data
       from payment_reports where waba_id = ? and lane = ? order by event_uuid desc limit ?`,
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
