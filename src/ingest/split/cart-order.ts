import type { CartOrder } from '../../features/messages/orders/orders.ts';
import { items, type JsonNode, member, sourceOf, textOf } from '../../platform/json/json-text.ts';
import { boundedIdOf, MAX_ID_CHARS, shortTextOf } from '../../platform/json/storable-text.ts';

/** How much is kept of texts, in UTF-16 units. */
const MAX_CHARS = { currency: 16, number: 400 };

function numberTextOf(node: JsonNode | null): string | null {
  const text = textOf(node);
  // Longer ones are no prices or quantities, and all of them end in a text column.
  return text !== null && text.length <= MAX_CHARS.number ? shortTextOf(node, MAX_CHARS.number) : null;
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
        currency: shortTextOf(member(item, 'currency'), MAX_CHARS.currency),
      })),
  };
}
