import type { CartItem, InboundRequest } from './inbound-request.ts';
import type { JsonObject } from './webhook-body.ts';

/** The cart of a demo order: prices are decimal major units, as the platform sends them. */
const DEMO_CART: readonly CartItem[] = [
  { retailerId: 'sku-red-42', quantity: 2, itemPrice: 149.5, currency: 'INR' },
  { retailerId: 'sku-blue-7', quantity: 1, itemPrice: 89.9, currency: 'INR' },
];

/** The `order` member: a cart sent from the catalog. */
export function cartContent(request: InboundRequest): JsonObject {
  const items = request.items ?? DEMO_CART;
  return {
    order: {
      catalog_id: request.catalogId ?? '700000000000002',
      text: request.text ?? '',
      product_items: items.map((item) => ({
        product_retailer_id: item.retailerId,
        quantity: item.quantity,
        item_price: item.itemPrice,
        currency: item.currency,
      })),
    },
  };
}
