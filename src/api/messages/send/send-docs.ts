import { documented } from '../../openapi/documented.ts';

const FROM = { phoneNumberId: '800000000000111', to: '+12025550143' };

const requests = {
  text: { ...FROM, type: 'text', text: { body: 'Your order is ready.' } },
  reply: {
    ...FROM,
    type: 'text',
    context: { message_id: 'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUZFOERGMUE1QTE5ODA0OTNDQQA=' },
    text: { body: 'Yes, in blue too.' },
  },
  image: { ...FROM, type: 'image', image: { link: 'https://shop.example/mug.jpg', caption: 'New' } },
  template: {
    ...FROM,
    type: 'template',
    template: {
      name: 'order_ready',
      language: { code: 'en_US' },
      components: [{ type: 'body', parameters: [{ type: 'text', text: 'Asha' }] }],
    },
  },
  buttons: {
    ...FROM,
    type: 'interactive',
    interactive: {
      type: 'button',
      body: { text: 'Shall we deliver today?' },
      action: {
        buttons: [
          { type: 'reply', reply: { id: 'yes', title: 'Yes' } },
          { type: 'reply', reply: { id: 'no', title: 'No' } },
        ],
      },
    },
  },
  'order status': {
    ...FROM,
    type: 'interactive',
    interactive: {
      type: 'order_status',
      body: { text: 'On its way' },
      action: {
        name: 'review_order',
        parameters: { reference_id: 'ord-1001', order: { status: 'shipped' } },
      },
    },
  },
  'business-scoped id': {
    phoneNumberId: '800000000000111',
    recipient: 'US.13491208655302741918',
    type: 'text',
    text: { body: 'Hello' },
  },
};

/** What the document says about sending. */
export const sendDocs = documented({
  operationId: 'sendMessage',
  summary: 'Send a message',
  description:
    'The body is the upstream platform’s own message object with `phoneNumberId` in front, and exactly one of `to` and `recipient`. The answer waits up to about 10 seconds for upstream. What upstream has added since goes into `extra`.',
  tag: 'Messages',
  idempotent: true,
  errors: [
    'unknown_phone_number',
    'unknown_media',
    'media_expired',
    'wrong_media_type',
    'idempotency_key_in_flight',
    'idempotency_key_reused',
    'upstream_refused',
    'message_not_sent',
  ],
  requests,
  answers: {
    200: { description: 'Upstream has the message.', headers: ['Idempotent-Replayed'] },
    202: {
      description:
        '`queued`: the message goes out by itself. `unknown`: it may have reached upstream, and is not sent again.',
      example: { metaMessageId: null, state: 'queued' },
      headers: ['Idempotent-Replayed'],
    },
  },
});
