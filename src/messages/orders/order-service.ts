import {
  addDecimals,
  type Decimal,
  formatDecimal,
  jsonNumberText,
  multiplyDecimals,
  parseDecimal,
  ZERO,
} from '../../platform/decimal.ts';
import type { CartItem, OrderEventParts } from '../orders.ts';

/** What the catalog knows of a product. */
export type Product = { name?: string; imageUrl?: string };

/** What `data.service` of an order is made of. */
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

/** JSON object text of the members that have a value. */
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
 * JSON text of `data.service`: the cart with what the catalog knows. The total is the exact decimal sum over the
 * first item's currency; a quantity or price that is no number counts as 0 and is left out of its item.
 * Throws TypeError when orderId is no whole number.
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

/** JSON text of `data` of an `order` event: the upstream cart as it is written, with the enrichment beside it. */
export function orderEventData(parts: OrderEventParts, serviceJson: string): string {
  const { metadataJson, contactsJson, orderJson } = parts;
  return `{"metadata":${metadataJson},"contacts":${contactsJson},"order":${orderJson},"service":${serviceJson}}`;
}
