import type { Database, Transaction } from '../platform/postgres/database.ts';
import { execute, query } from '../platform/postgres/sql.ts';

/** What the `order` event is built from once `service` is known. */
export type OrderEventParts = {
  /** The catalog id; the message id when the cart names no catalog. */
  eventId: string;
  metadataJson: string;
  contactsJson: string;
  orderJson: string;
};

/** One line of a cart; numbers stay as upstream writes them. */
export type CartItem = {
  retailerId: string | null;
  quantityText: string | null;
  itemPriceText: string | null;
  currency: string | null;
};

/** A catalog cart order inside a message. */
export type CartOrder = {
  catalogId: string | null;
  /** The upstream `order` object, byte for byte. */
  cartJson: string;
  items: CartItem[];
};

export type NewOrder = {
  wabaId: string;
  messageId: string;
  phoneNumberId: string;
  catalogId: string | null;
  cartJson: string;
  eventDay: string;
  eventUuid: string;
};

/** Stores orders whose event is reserved, numbered per tenant in the order given; returns them in that order. */
export async function insertOrders(
  trx: Transaction,
  orders: readonly NewOrder[],
): Promise<{ orderId: string; wabaId: string }[]> {
  if (orders.length === 0) return [];
  return await query<{ orderId: string; wabaId: string }>(
    trx,
    `with given as (
       select o.*, w.tenant_id, row_number() over (partition by w.tenant_id order by o.n) as own
         from unnest(?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::date[], ?::uuid[]) with ordinality
           as o (waba_id, message_id, phone_number_id, catalog_id, cart, event_day, event_uuid, n)
         join wabas w using (waba_id)
     ), drawn as (
       update tenants t set last_order_number = t.last_order_number + g.orders
         from (select tenant_id, count(*) as orders from given group by tenant_id) as g
        where t.id = g.tenant_id
       returning t.id, t.last_order_number - g.orders as before
     )
     insert into orders (waba_id, message_id, phone_number_id, catalog_id, cart, event_day, event_uuid, number)
     select waba_id, message_id, phone_number_id, catalog_id, cart, event_day, event_uuid, drawn.before + own
       from given join drawn on drawn.id = given.tenant_id
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
  /** Per tenant, from 1: what tenants know it by. */
  number: string;
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
    `select id as "orderId", number, catalog_id as "catalogId", cart as "cartJson", event_day as "eventDay",
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
