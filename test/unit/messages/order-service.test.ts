import { describe, expect, test } from 'vitest';
import { orderEventData, orderService, type Product } from '../../../src/features/messages/orders/orders.ts';
import { splitFixture } from '../ingest/support/upstream-body.ts';

const PLACEHOLDER = 'https://gateway.example/no-image.png';
type Item = Parameters<typeof orderService>[0]['items'][number];

function item(
  retailerId: string | null,
  quantityText: string | null,
  itemPriceText: string | null,
  currency: string | null = 'USD',
): Item {
  return { retailerId, quantityText, itemPriceText, currency };
}

function service(items: Item[], products: [string, Product][] = []): string {
  return orderService({
    orderId: '42',
    items,
    products: new Map(products),
    placeholderImageUrl: PLACEHOLDER,
  });
}

describe('data.service of an order', () => {
  test('has the members of the spec, filled from the cart and the catalog', () => {
    const json = service(
      [item('red', '2', '30'), item('blue', '1', '25.50')],
      [['red', { name: 'Red "42"', imageUrl: 'https://cdn.example/red.jpg' }]],
    );
    expect(json).toBe(
      '{"order_id":42,"order_number":"ORD-42","items_count":2,"total_amount":85.5,"currency":"USD",' +
        '"thumbnail_url":"https://cdn.example/red.jpg","items":[' +
        '{"product_retailer_id":"red","product_name":"Red \\"42\\"","quantity":2,"item_price":30,"currency":"USD","image_url":"https://cdn.example/red.jpg"},' +
        `{"product_retailer_id":"blue","product_name":"blue","quantity":1,"item_price":25.50,"currency":"USD","image_url":"${PLACEHOLDER}"}]}`,
    );
  });

  test.each([
    ['without float error', [item('a', '3', '0.1')], '0.3'],
    ['beyond 2^53', [item('a', '9007199254740993', '1')], '9007199254740993'],
    ['with exponents', [item('a', '2', '1.5e1')], '30'],
    [
      'over the first currency only',
      [item('a', '1', '1.10', 'USD'), item('b', '1', '9', 'INR'), item('c', '1', '2', 'USD')],
      '3.1',
    ],
    ['with numbers in strings', [item('a', '02', '1.5')], '3'],
    [
      'with missing and broken numbers as 0',
      [item('a', null, '5'), item('b', 'two', '5'), item('c', '1', '4'), item('d', '1', '1e9999')],
      '4',
    ],
    ['of nothing', [], '0'],
  ])('adds up %s', (_name, items, total) => {
    expect(service(items)).toContain(`"total_amount":${total},`);
  });

  test('leaves out what an item does not have, and is JSON whatever the cart holds', () => {
    const parsed = JSON.parse(service([item(null, 'x', '1e9999', null), item('', '007', '-0', '"')]));
    expect(parsed).toMatchObject({ items_count: 2, thumbnail_url: PLACEHOLDER });
    expect(parsed).not.toHaveProperty('currency');
    expect(parsed.items[0]).toEqual({
      product_name: '',
      item_price: Number.POSITIVE_INFINITY,
      image_url: PLACEHOLDER,
    });
    expect(parsed.items[1]).toMatchObject({ quantity: 7, item_price: -0, currency: '"' });
  });

  test('refuses an order id that is no number', () => {
    const input = { items: [], products: new Map(), placeholderImageUrl: PLACEHOLDER };
    expect(() => orderService({ ...input, orderId: '4"' })).toThrow(TypeError);
    expect(orderService({ ...input, orderId: 9007199254740993n })).toContain('"order_id":9007199254740993,');
  });
});

describe('the order event', () => {
  test('carries the raw cart and the enrichment beside it', () => {
    const [message] = splitFixture('in_order_inr_decimals_empty_text').items;
    if (message?.kind !== 'message' || !message.order || !message.orderEventParts)
      throw new Error('no order');
    const data = JSON.parse(orderEventData(message.orderEventParts, service(message.order.items)));
    expect(Object.keys(data)).toEqual(['metadata', 'contacts', 'order', 'service']);
    expect(data.order.product_items[0].item_price).toBe(149.5);
    expect(data.service).toMatchObject({
      total_amount: 448.5,
      currency: 'INR',
      items: [{ product_name: 'मसाला-01' }],
    });
    expect(message.orderEventParts.eventId).toBe('700000000000002');
  });
});
