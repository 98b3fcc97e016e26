import { type TSchema, Type } from 'typebox';
import { type CoreEventType, UPSTREAM_TYPE_PATTERN } from '../../../platform/event-type.ts';
import { named } from '../../external/schema-kit.ts';

/** The seven members of every event; members may be added at any time. */
function envelopeOf<T extends TSchema>(title: string, eventType: CoreEventType, data: T) {
  return Type.Object(
    { eventType: Type.Literal(eventType), ...envelopeMembers(PhoneNumberId, data) },
    { title },
  );
}

const PhoneNumberId = Type.String({ description: 'The number that received or sent.' });

function envelopeMembers<N extends TSchema, T extends TSchema>(phoneNumberId: N, data: T) {
  return {
    userId: Type.Integer({ description: 'The tenant.' }),
    wabaId: Type.String({ description: 'The WhatsApp Business Account.' }),
    phoneNumberId,
    eventId: Type.String({
      description: 'The id of the subject, not unique: deduplicate by the header webhook-id.',
    }),
    occurredAt: Type.String({
      format: 'date-time',
      description: 'When it was released for delivery, UTC.',
    }),
    data,
  };
}

const Metadata = named('PhoneNumberMetadata', {
  display_phone_number: Type.Optional(Type.String()),
  phone_number_id: Type.Optional(Type.String()),
});

/** Upstream's entries of the sender; a customer may be known by a user id only. */
const Contacts = Type.Array(
  named('CustomerContact', {
    profile: Type.Optional(Type.Object({ name: Type.Optional(Type.String()) })),
    wa_id: Type.Optional(Type.String()),
    user_id: Type.Optional(Type.String()),
  }),
);

const InboundMessage = Type.Object(
  {
    from: Type.Optional(
      Type.String({ description: 'Missing when upstream knows the customer by an id only.' }),
    ),
    from_user_id: Type.Optional(Type.String()),
    id: Type.String(),
    timestamp: Type.Optional(Type.String({ description: 'Seconds since 1970.' })),
    type: Type.Optional(
      Type.String({ description: 'Also the name of the member with the content: text, image, order, …' }),
    ),
    text: Type.Optional(Type.Object({ body: Type.Optional(Type.String()) })),
  },
  { title: 'InboundMessage', description: 'The unchanged upstream message.' },
);

const MessageStatus = Type.Object(
  {
    id: Type.String({ description: 'The upstream id of the message.' }),
    status: Type.String({ description: 'sent, delivered, read, failed, …' }),
    timestamp: Type.Optional(Type.String({ description: 'Seconds since 1970.' })),
    recipient_id: Type.Optional(Type.String()),
  },
  { title: 'UpstreamStatus', description: 'The unchanged upstream status.' },
);

const Money = Type.Object(
  { value: Type.Optional(Type.Number()), offset: Type.Optional(Type.Number()) },
  { title: 'UpstreamAmount', description: 'The amount is value divided by offset.' },
);

const Payment = Type.Object({
  metadata: Metadata,
  reference_id: Type.Optional(Type.String()),
  status: Type.Optional(
    Type.String({
      description:
        'captured, pending, failed, … After `captured`, send `order_status` messages to the customer.',
    }),
  ),
  amount: Type.Optional(Money),
  currency: Type.Optional(Type.String()),
  transaction: Type.Optional(
    Type.Object({
      id: Type.Optional(Type.String()),
      pg_transaction_id: Type.Optional(Type.String()),
      type: Type.Optional(Type.String()),
      status: Type.Optional(Type.String()),
      method: Type.Optional(Type.Object({ type: Type.Optional(Type.String()) })),
    }),
  ),
  recipient_id: Type.Optional(Type.String()),
  timestamp: Type.Optional(Type.String({ description: 'Seconds since 1970.' })),
  raw: Type.Object({}, { additionalProperties: true, description: 'The unchanged upstream status.' }),
});

const CART_LINE = {
  product_retailer_id: Type.Optional(Type.String()),
  quantity: Type.Optional(Type.Number()),
  item_price: Type.Optional(Type.Number()),
  currency: Type.Optional(Type.String()),
};

const Order = Type.Object({
  metadata: Metadata,
  contacts: Contacts,
  order: Type.Object(
    {
      catalog_id: Type.Optional(Type.String()),
      text: Type.Optional(Type.String()),
      product_items: Type.Optional(
        Type.Array(Type.Object(CART_LINE), {
          description: 'Keep reading these lines where you parse upstream’s own format.',
        }),
      ),
    },
    { description: 'The unchanged upstream cart.' },
  ),
  service: Type.Object({
    order_id: Type.Integer(),
    order_number: Type.String(),
    items_count: Type.Integer(),
    total_amount: Type.Number(),
    currency: Type.Optional(Type.String()),
    thumbnail_url: Type.String(),
    items: Type.Array(Type.Object({ ...CART_LINE, product_name: Type.String(), image_url: Type.String() }), {
      description: 'Prefer these items when you render the order.',
    }),
  }),
});

const ReadyMedia = Type.Object({
  metaMessageId: Type.String({ description: 'message.id of the message event.' }),
  serviceMessageId: Type.String({ description: 'Our id of the message.' }),
  mediaType: Type.String(),
  mimeType: Type.String(),
  mediaPath: Type.String({ pattern: '^/received_media/' }),
  mediaUrl: Type.String({
    pattern: '^https://',
    description:
      'Prefer it to `mediaPath` when you download the file. It needs no API key: everyone with it can read the file.',
  }),
  caption: Type.Optional(Type.String()),
});

export const EVENT_BODIES = {
  message: envelopeOf(
    'MessageEvent',
    'message',
    Type.Object({ metadata: Metadata, contacts: Contacts, message: InboundMessage }),
  ),
  status: envelopeOf(
    'StatusEvent',
    'status',
    Type.Object({ metadata: Metadata, contacts: Type.Optional(Contacts), status: MessageStatus }),
  ),
  payment: envelopeOf('PaymentEvent', 'payment', Payment),
  order: envelopeOf('OrderEvent', 'order', Order),
  'media.ready': envelopeOf('MediaReadyEvent', 'media.ready', ReadyMedia),
  test: envelopeOf('TestEvent', 'test', Type.Object({ message: Type.String(), businessName: Type.String() })),
} satisfies Record<CoreEventType, TSchema>;

export const UPSTREAM_EVENT_BODY = named('UpstreamEvent', {
  eventType: Type.String({
    pattern: UPSTREAM_TYPE_PATTERN,
    description: '`upstream.` and the field.',
    examples: ['upstream.account_update'],
  }),
  ...envelopeMembers(
    Type.Union([Type.String(), Type.Null()], {
      description: 'The number that the value names in its `metadata`; null where it names none.',
    }),
    Type.Object({
      field: Type.String({ description: 'The field, as upstream calls it.' }),
      value: Type.Unknown({ description: 'What upstream reports, unmodified.' }),
    }),
  ),
});
