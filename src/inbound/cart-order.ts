import { items, type JsonNode, member, sourceOf, textOf } from '../platform/json/json-text.ts';
import { boundedIdOf, MAX_ID_CHARS, shortTextOf } from '../platform/json/storable-text.ts';

/** What the `order` event is built from once `service` is known. */
export type OrderEventParts = {
  /** The catalog id; the message id when the cart names no catalog. */
  eventId: string;
  metadataJson: string;
  contactsJson: string;
  orderJson: string;
};

const MAX_CURRENCY_CHARS = 16;
const MAX_NUMBER_CHARS = 400;

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

function numberTextOf(node: JsonNode | null): string | null {
  const text = textOf(node);
  // Longer ones are no prices or quantities, and all of them end in a text column.
  return text !== null && text.length <= MAX_NUMBER_CHARS ? shortTextOf(node, MAX_NUMBER_CHARS) : null;
}

/** Reads `message.order`; null when it is missing or no object. Entries that are no objects are passed over. */
export function readCartOrder(message: JsonNode): CartOrder | null {
  const order = member(message, 'order');
  if (order?.kind !== 'object') return null;
  return {
    catalogId: boundedIdOf(member(order, 'catalog_id')),
    cartJson: sourceOf(order),
    items: items(member(order, 'product_items'))
      .filter((item) => item.kind === 'object')
      .map((item) => ({
        retailerId: shortTextOf(member(item, 'product_retailer_id'), MAX_ID_CHARS),
        quantityText: numberTextOf(member(item, 'quantity')),
        itemPriceText: numberTextOf(member(item, 'item_price')),
        currency: shortTextOf(member(item, 'currency'), MAX_CURRENCY_CHARS),
      })),
  };
}
