import type { CoreEventType } from '../../../platform/event-type.ts';

const FIXTURE_STORE = { wabaId: '900000000000101', phoneNumberId: '800000000000111' };
const INDIAN_STORE = { wabaId: '900000000000202', phoneNumberId: '800000000000221' };

const TRANSACTION = {
  id: 'order_FIXTURE1',
  type: 'razorpay',
  status: 'success',
  created_timestamp: 1790003000,
  updated_timestamp: 1790003060,
  pg_transaction_id: 'pay_FIXTURE1',
  method: { type: 'upi' },
};

function example(eventType: CoreEventType, from: object, eventId: string, data: object) {
  return { eventType, userId: 1, ...from, eventId, occurredAt: '2026-11-21T09:30:00.123Z', data };
}

const FIRST_TEXT = {
  id: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUZFOERGMUE1QTE5ODA0OTNDQQA=',
  timestamp: '1790000007',
  body: 'Does it come in another size?',
};

const SECOND_TEXT = {
  id: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQTNDMTVENEYxQjg2RTc5MjBBRAA=',
  timestamp: '1790000009',
  body: 'I need it by Friday.',
};

function textExample({ id, timestamp, body }: typeof FIRST_TEXT) {
  return example('message', FIXTURE_STORE, id, {
    metadata: { display_phone_number: '12025550100', phone_number_id: '800000000000111' },
    contacts: [{ profile: { name: 'Asha Tester' }, wa_id: '12025550143' }],
    message: { from: '12025550143', id, timestamp, type: 'text', text: { body } },
  });
}

export const BATCH_EXAMPLE = {
  eventType: 'message.batch',
  eventId: 'batch_019aa2b37c4d7e8f9a0b1c2d3e4f5062',
  count: 2,
  events: [textExample(FIRST_TEXT), textExample(SECOND_TEXT)],
};

/** A test holds them against what the service makes of upstream bodies. */
export const WEBHOOK_EXAMPLES: Readonly<Record<CoreEventType, unknown>> = {
  message: textExample(FIRST_TEXT),
  'media.ready': example(
    'media.ready',
    FIXTURE_STORE,
    'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUEyOUI4MDVFNjE0NEU0NzgwMAA=_media',
    {
      metaMessageId: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUEyOUI4MDVFNjE0NEU0NzgwMAA=',
      serviceMessageId: '1042',
      mediaType: 'image',
      mimeType: 'image/jpeg',
      mediaPath: '/received_media/pP0mK1v3rQ9sZ2xYb7Lw4tNc6uHd8eFa',
      mediaUrl: 'https://gateway.example/received_media/pP0mK1v3rQ9sZ2xYb7Lw4tNc6uHd8eFa',
      caption: 'Front door',
    },
  ),
  status: example('status', FIXTURE_STORE, 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBJDQTBERjJDOTVBQTE0NEMxRDAA', {
    metadata: { display_phone_number: '12025550100', phone_number_id: '800000000000111' },
    status: {
      id: 'wamid.HBgLMTIwMjU1NTAxNDMVAgARGBJDQTBERjJDOTVBQTE0NEMxRDAA',
      status: 'delivered',
      timestamp: '1790001065',
      recipient_id: '12025550143',
      pricing: { billable: true, pricing_model: 'PMP', type: 'regular', category: 'marketing' },
    },
  }),
  payment: example('payment', INDIAN_STORE, 'payment:ord-1001:order_FIXTURE1:captured', {
    metadata: { display_phone_number: '910000000221', phone_number_id: '800000000000221' },
    reference_id: 'ord-1001',
    status: 'captured',
    amount: { value: 21000, offset: 100 },
    currency: 'INR',
    transaction: TRANSACTION,
    recipient_id: '910000000143',
    timestamp: '1790003085',
    raw: {
      id: 'wamid.HBgMOTEwMDAwMDAwMTQzFQIAERgSODhGRDhGMjI5NUNCNDU0QjREAA==',
      recipient_id: '910000000143',
      type: 'payment',
      status: 'captured',
      payment: {
        reference_id: 'ord-1001',
        amount: { value: 21000, offset: 100 },
        transaction: TRANSACTION,
        currency: 'INR',
        receipt: 'rcpt-1001',
        notes: { cart: 'c_1', store: 'blr-01' },
      },
      timestamp: '1790003085',
    },
  }),
  order: example('order', FIXTURE_STORE, '700000000000001', {
    metadata: { display_phone_number: '12025550100', phone_number_id: '800000000000111' },
    contacts: [{ profile: { name: 'Asha Tester' }, wa_id: '12025550143' }],
    order: {
      catalog_id: '700000000000001',
      text: 'Love these!',
      product_items: [
        { product_retailer_id: 'sku-red-42', quantity: 2, item_price: 30, currency: 'USD' },
        { product_retailer_id: 'sku-blue-7', quantity: 1, item_price: 25, currency: 'USD' },
      ],
    },
    service: {
      order_id: 17,
      order_number: 'ORD-17',
      items_count: 2,
      total_amount: 85,
      currency: 'USD',
      thumbnail_url: 'https://images.example/red-mug.jpg',
      items: [
        {
          product_retailer_id: 'sku-red-42',
          product_name: 'Red mug',
          quantity: 2,
          item_price: 30,
          currency: 'USD',
          image_url: 'https://images.example/red-mug.jpg',
        },
        {
          product_retailer_id: 'sku-blue-7',
          product_name: 'sku-blue-7',
          quantity: 1,
          item_price: 25,
          currency: 'USD',
          image_url: 'https://gateway.example/assets/product-placeholder.png',
        },
      ],
    },
  }),
  test: example('test', { ...FIXTURE_STORE, phoneNumberId: 'TEST_PHONE_NUMBER_ID' }, 'test_1', {
    message: 'This is a test event. Your webhook endpoint is set up.',
    businessName: 'Fixture Store',
  }),
  'window.closing': example('window.closing', FIXTURE_STORE, 'window_42_1795256940_60', {
    conversationId: '42',
    customer: { waId: '12025550143', userId: null },
    groupId: null,
    lastInboundAt: '2026-11-20T10:29:00.000Z',
    lastCallAt: null,
    expiresAt: '2026-11-21T10:29:00.000Z',
  }),
  preference: example('preference', FIXTURE_STORE, 'preference_42', {
    customer: { waId: '12025550143', userId: null },
    phoneNumberId: '800000000000111',
    scope: 'marketing',
    state: 'stop',
    source: 'keyword',
    since: '2026-11-21T09:29:58.000Z',
  }),
};
