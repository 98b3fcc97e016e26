import {
  addDecimals,
  type Decimal,
  formatDecimal,
  jsonNumberText,
  multiplyDecimals,
  parseDecimal,
  ZERO,
} from '../../../platform/decimal.ts';
import { columnsOf } from '../../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { execute, query, queryOne } from '../../../platform/postgres/sql.ts';
import type { TaskKind, WorkflowTask } from '../../../platform/temporal/workflow-tasks.ts';
import { DRAW_ORDER_NUMBERS } from '../../accounts/order-numbers.ts';

export type OrderEventParts = {
  /** The catalog id; the message id when the cart names no catalog. */
  eventId: string;
  metadataJson: string;
  contactsJson: string;
  orderJson: string;
};

/** Numbers stay as upstream writes them. */
export type CartItem = {
  retailerId: string | null;
  quantityText: string | null;
  itemPriceText: string | null;
  currency: string | null;
};

export type CartOrder = {
  catalogId: string | null;
  /** The upstream `order` object, byte for byte. */
  cartJson: string;
  items: CartItem[];
};

export type NewOrder = Omit<StoredOrder, 'orderId' | 'number' | 'service'> & {
  wabaId: string;
  messageId: string;
  phoneNumberId: string;
};

export const ENRICH_ORDER: TaskKind = {
  workflowType: 'enrichOrder',
  summary: 'look up the products of an order',
  eventType: 'order',
  // Later orders of its catalog wait behind it.
  isRestartedEveryMinute: true,
};

export function enrichOrderTask(
  { wabaId, orderId }: { wabaId: string; orderId: string },
  eventId: string,
): WorkflowTask {
  const argument = { wabaId, orderId };
  return { workflowId: orderWorkflowId(orderId), kind: ENRICH_ORDER, wabaId, eventId, argument };
}

export function orderWorkflowId(orderId: string): string {
  return `order/${orderId}`;
}

/** Their events are reserved. They are numbered per tenant in the order given, and returned in that order. */
export async function insertOrders(
  trx: Transaction,
  orders: readonly NewOrder[],
): Promise<{ orderId: string; wabaId: string }[]> {
  if (orders.length === 0) return [];
  return await query<{ orderId: string; wabaId: string }>(
    trx,
    `with given as (
       select o.*, w.tenant_id, row_number() over (partition by w.tenant_id order by o.n) as own
         from unnest(:wabaId::text[], :messageId::bigint[], :phoneNumberId::text[], :catalogId::text[], :cartJson::text[], :eventDay::date[], :eventUuid::uuid[]) with ordinality
           as o (waba_id, message_id, phone_number_id, catalog_id, cart, event_day, event_uuid, n)
         join wabas w using (waba_id)
     ), drawn as (
       ${DRAW_ORDER_NUMBERS}
     )
     insert into orders (waba_id, message_id, phone_number_id, catalog_id, cart, event_day, event_uuid, number)
     select waba_id, message_id, phone_number_id, catalog_id, cart, event_day, event_uuid, drawn.before + own
       from given join drawn on drawn.id = given.tenant_id
      order by n
     returning id as "orderId", waba_id as "wabaId"`,
    columnsOf(
      orders,
      'wabaId',
      'messageId',
      'phoneNumberId',
      'catalogId',
      'cartJson',
      'eventDay',
      'eventUuid',
    ),
  );
}

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

export async function findOrder(
  database: Database,
  wabaId: string,
  orderId: string,
): Promise<StoredOrder | null> {
  return await queryOne<StoredOrder>(
    database,
    `select id as "orderId", number, catalog_id as "catalogId", cart as "cartJson", event_day as "eventDay",
            event_uuid as "eventUuid", service
       from orders where id = :orderId and waba_id = :wabaId`,
    { orderId, wabaId },
  );
}

/** What was stored first stays. */
export async function saveOrderService(
  trx: Transaction,
  wabaId: string,
  orderId: string,
  service: string,
): Promise<void> {
  const text =
    'update orders set service = :service where id = :orderId and waba_id = :wabaId and service is null';
  await execute(trx, text, { service, orderId, wabaId });
}

export type Product = { name?: string; imageUrl?: string };

type OrderServiceInput = {
  /** From our sequence: a whole number, also as text because PostgreSQL's bigint comes as text. */
  orderId: number | bigint | string;
  items: readonly CartItem[];
  /** By retailer id; may be incomplete or empty. */
  products: ReadonlyMap<string, Product>;
  /** https address of the image that stands in for a missing one. */
  placeholderImageUrl: string;
};

function decimalOf(text: string | null): Decimal {
  const number = text === null ? null : jsonNumberText(text);
  return (number === null ? null : parseDecimal(number)) ?? ZERO;
}

function totalOf(items: readonly CartItem[], currency: string | null): string {
  const total = items
    .filter((item) => item.currency === currency)
    .map((item) => multiplyDecimals(decimalOf(item.quantityText), decimalOf(item.itemPriceText)))
    .reduce(addDecimals, ZERO);
  return formatDecimal(total);
}

function objectJson(parts: readonly [string, string | null][]): string {
  const present = parts.filter(([, json]) => json !== null);
  return `{${present.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
}

function stringJson(text: string | null): string | null {
  return text === null ? null : JSON.stringify(text);
}

function itemJson(item: CartItem, input: OrderServiceInput): string {
  const product = item.retailerId === null ? undefined : input.products.get(item.retailerId);
  return objectJson([
    ['product_retailer_id', stringJson(item.retailerId)],
    ['product_name', JSON.stringify(product?.name || item.retailerId || '')],
    ['quantity', item.quantityText === null ? null : jsonNumberText(item.quantityText)],
    ['item_price', item.itemPriceText === null ? null : jsonNumberText(item.itemPriceText)],
    ['currency', stringJson(item.currency)],
    ['image_url', JSON.stringify(product?.imageUrl || input.placeholderImageUrl)],
  ]);
}

/**
 * JSON text of the cart with what the catalog knows. The total is the exact decimal sum over the first item's currency; a quantity or price
 * that is no number counts as 0 and is left out of its item. Throws TypeError when orderId is no whole number.
 */
export function orderService(input: OrderServiceInput): string {
  const orderId = String(input.orderId);
  if (!/^(0|[1-9]\d*)$/.test(orderId)) throw new TypeError('orderId is not a whole number');
  const [first] = input.items;
  const currency = first?.currency ?? null;
  const firstProduct = first?.retailerId ? input.products.get(first.retailerId) : undefined;
  return objectJson([
    ['order_id', orderId],
    ['order_number', JSON.stringify(`ORD-${orderId}`)],
    ['items_count', String(input.items.length)],
    ['total_amount', totalOf(input.items, currency)],
    ['currency', stringJson(currency)],
    ['thumbnail_url', JSON.stringify(firstProduct?.imageUrl || input.placeholderImageUrl)],
    ['items', `[${input.items.map((item) => itemJson(item, input)).join(',')}]`],
  ]);
}

/** JSON text: the upstream cart as it is written, with the enrichment beside it. */
export function orderEventData(parts: OrderEventParts, serviceJson: string): string {
  const { metadataJson, contactsJson, orderJson } = parts;
  return `{"metadata":${metadataJson},"contacts":${contactsJson},"order":${orderJson},"service":${serviceJson}}`;
}
