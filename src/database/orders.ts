import type { Database, Transaction } from './database.ts';
import { execute, query } from './sql.ts';

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

/** An order as it was stored. */
export type StoredOrder = {
  orderId: string;
  catalogId: string | null;
  cartJson: string;
  eventDay: string;
  eventUuid: string;
  /** JSON text of `data.service`; null until the order was enriched. */
  service: string | null;
};

/** An order of this WABA; null when there is none such. */
export async function findOrder(
  database: Database,
  wabaId: string,
  orderId: string,
): Promise<StoredOrder | null> {
  const [row] = await query<StoredOrder>(
    database,
    `select id as "orderId", catalog_id as "catalogId", cart as "cartJson", event_day as "eventDay",
            event_uuid as "eventUuid", service
       from orders where id = ? and waba_id = ?`,
    [orderId, wabaId],
  );
  return row ?? null;
}

/** Stores `data.service` once; what was stored first stays. */
export async function saveOrderService(
  trx: Transaction,
  wabaId: string,
  orderId: string,
  service: string,
): Promise<void> {
  await execute(trx, 'update orders set service = ? where id = ? and waba_id = ? and service is null', [
    service,
    orderId,
    wabaId,
  ]);
}
