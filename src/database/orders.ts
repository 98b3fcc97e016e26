import type { Transaction } from './database.ts';
import { query } from './sql.ts';

export type NewOrder = {
  wabaId: string;
  messageId: string;
  phoneNumberId: string;
  catalogId: string | null;
  cartJson: string;
  eventDay: string;
  eventUuid: string;
};

/** Stores orders whose event is reserved; their ids are numbered in the order given. */
export async function insertOrders(
  trx: Transaction,
  orders: readonly NewOrder[],
): Promise<{ orderId: string; wabaId: string }[]> {
  if (orders.length === 0) return [];
  return await query<{ orderId: string; wabaId: string }>(
    trx,
    `insert into orders (waba_id, message_id, phone_number_id, catalog_id, cart, event_day, event_uuid)
     select waba_id, message_id, phone_number_id, catalog_id, cart, event_day, event_uuid
       from unnest(?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::date[], ?::uuid[]) with ordinality
         as o (waba_id, message_id, phone_number_id, catalog_id, cart, event_day, event_uuid, n)
      order by n
     returning id as "orderId", waba_id as "wabaId"`,
    [
      orders.map((o) => o.wabaId),
      orders.map((o) => o.messageId),
      orders.map((o) => o.phoneNumberId),
      orders.map((o) => o.catalogId),
      orders.map((o) => o.cartJson),
      orders.map((o) => o.eventDay),
      orders.map((o) => o.eventUuid),
    ],
  );
}
