import { type TProperties, type TSchema, Type } from 'typebox';
import { type CoreEventType, MESSAGE_BATCH, UPSTREAM_TYPE_PATTERN } from '../../../platform/event-type.ts';
import { named } from '../../external/schema-kit.ts';

/** The seven members of every event; members may be added at any time. */
function envelopeOf<T extends TSchema>(
  title: string,
  eventType: CoreEventType,
  data: T,
  phoneNumberId: TSchema = PhoneNumberId,
) {
  return Type.Object(
    {
      eventType: Type.Literal(eventType, { description: 'The type; it decides the form of `data`.' }),
      ...envelopeMembers(phoneNumberId, data),
    },
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

function dataOf<T extends TProperties>(members: T) {
  return Type.Object(members, { description: 'Content of the event.' });
}

/** A text that upstream may leave out. */
function optionalText(description: string) {
  return Type.Optional(Type.String({ description }));
}

const SECONDS = 'Seconds since 1970.';

const Metadata = Type.Object(
  {
    display_phone_number: optionalText('The number of the business, in digits.'),
    phone_number_id: optionalText('The same as `phoneNumberId` of the event.'),
  },
  { title: 'PhoneNumberMetadata', description: 'The number that received or sent, as upstream names it.' },
);

const Contacts = Type.Array(
  named('CustomerContact', {
    profile: Type.Optional(
      Type.Object(
        { name: optionalText('The name that the customer chose.') },
        { description: 'The profile of the customer; a `username` joins it where there is one.' },
      ),
    ),
    wa_id: optionalText(
      'The phone number of the customer in digits; missing when upstream does not show it.',
    ),
    user_id: optionalText('The id of the customer at this business. It changes with the phone number.'),
  }),
  { description: 'Upstream’s entries of this customer, unchanged.' },
);

const InboundMessage = Type.Object(
  {
    from: Type.Optional(
      Type.String({ description: 'Missing when upstream knows the customer by an id only.' }),
    ),
    from_user_id: optionalText('The user id of the sender.'),
    id: Type.String({ description: 'The upstream id of the message (`wamid.…`).' }),
    timestamp: optionalText(SECONDS),
    type: Type.Optional(
      Type.String({ description: 'Also the name of the member with the content: text, image, order, …' }),
    ),
    text: Type.Optional(
      Type.Object(
        { body: optionalText('The text.') },
        { description: 'The content of a message of type `text`.' },
      ),
    ),
  },
  { title: 'InboundMessage', description: 'The unchanged upstream message.' },
);

const MessageStatus = Type.Object(
  {
    id: Type.String({ description: 'The upstream id of the message.' }),
    status: Type.String({ description: 'sent, delivered, read, failed, …' }),
    timestamp: optionalText(SECONDS),
    recipient_id: optionalText('The phone number of the recipient in digits, or the id of a group.'),
  },
  { title: 'UpstreamStatus', description: 'The unchanged upstream status.' },
);

const Others = Type.Optional(
  Type.Object(
    {},
    {
      additionalProperties: true,
      description:
        'Further members of the body of upstream, such as `conversation_context`. Absent where there are none.',
    },
  ),
);

const Money = Type.Object(
  {
    value: Type.Optional(Type.Number({ description: 'The amount in units of 1 / `offset`.' })),
    offset: Type.Optional(Type.Number({ description: '100 where the currency has cents.' })),
  },
  { title: 'UpstreamAmount', description: 'The amount is value divided by offset.' },
);

const CURRENCY = 'The currency as ISO 4217, such as `INR`.';

const Payment = dataOf({
  metadata: Metadata,
  reference_id: optionalText('The id that you gave the payment in the order message.'),
  status: Type.Optional(
    Type.String({
      description:
        'captured, pending, failed, … After `captured`, send `order_status` messages to the customer.',
    }),
  ),
  amount: Type.Optional(Money),
  currency: optionalText(CURRENCY),
  transaction: Type.Optional(
    Type.Object(
      {
        id: optionalText('The id at upstream.'),
        pg_transaction_id: optionalText('The id at the payment gateway.'),
        type: optionalText('The payment gateway, such as `razorpay`.'),
        status: optionalText('`success`, `pending` or `failed`.'),
        method: Type.Optional(
          Type.Object(
            { type: optionalText('Such as `upi` or `card`.') },
            { description: 'How the customer paid.' },
          ),
        ),
      },
      { description: 'The latest transaction of the payment.' },
    ),
  ),
  recipient_id: optionalText('The phone number of the customer in digits.'),
  timestamp: optionalText(SECONDS),
  raw: Type.Object({}, { additionalProperties: true, description: 'The unchanged upstream status.' }),
  value: Others,
});

const CART_LINE = {
  product_retailer_id: optionalText('Your id of the product in the catalog.'),
  quantity: Type.Optional(Type.Number({ description: 'How many of it.' })),
  item_price: Type.Optional(Type.Number({ description: 'The price of one.' })),
  currency: optionalText(CURRENCY),
};

const Order = dataOf({
  metadata: Metadata,
  contacts: Contacts,
  order: Type.Object(
    {
      catalog_id: optionalText('The catalog that the products are in; the `eventId` too.'),
      text: optionalText('Text that the customer wrote with the cart.'),
      product_items: Type.Optional(
        Type.Array(Type.Object(CART_LINE), {
          description: 'Keep reading these lines where you parse upstream’s own format.',
        }),
      ),
    },
    { description: 'The unchanged upstream cart.' },
  ),
  service: Type.Object(
    {
      order_id: Type.Integer({ description: 'Counts the orders of the tenant.' }),
      order_number: Type.String({ description: 'The same for people: `ORD-` and the `order_id`.' }),
      items_count: Type.Integer({ description: 'How many lines `items` has.' }),
      total_amount: Type.Number({
        description: 'The sum of quantity × price, in the currency of the first line.',
      }),
      currency: optionalText('The currency of the first line as ISO 4217.'),
      thumbnail_url: Type.String({ description: 'A picture of the first product, or a placeholder.' }),
      items: Type.Array(
        Type.Object({
          ...CART_LINE,
          product_name: Type.String({ description: 'The name in the catalog; else the id of the product.' }),
          image_url: Type.String({ description: 'A picture of the product, or a placeholder.' }),
        }),
        { description: 'Prefer these items when you render the order.' },
      ),
    },
    { description: 'Details of the cart that Heliograph adds.' },
  ),
});

const ReadyMedia = dataOf({
  metaMessageId: Type.String({ description: 'message.id of the message event.' }),
  serviceMessageId: Type.String({ description: 'Our id of the message.' }),
  mediaType: Type.String({ description: '`image`, `video`, `audio`, `document` or `sticker`.' }),
  mimeType: Type.String({ description: 'As the message says it.' }),
  mediaPath: Type.String({ pattern: '^/received_media/', description: '`mediaUrl` without its beginning.' }),
  mediaUrl: Type.String({
    pattern: '^https://',
    description:
      'Prefer it to `mediaPath` when you download the file. It needs no API key: everyone with it can read the file.',
  }),
  caption: optionalText('The words of the customer below the file.'),
});

const nullableTime = (description: string) =>
  Type.Union([Type.String({ format: 'date-time' }), Type.Null()], { description });

const nullableText = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

const PERSON = {
  waId: nullableText('The phone number, as upstream spells it.'),
  userId: nullableText('The user id.'),
};

const ClosingWindow = dataOf({
  conversationId: Type.String({ description: 'Our id of the conversation.' }),
  customer: Type.Union([Type.Object(PERSON), Type.Null()], { description: 'Who wrote; null for a group.' }),
  groupId: nullableText('The group; null for a conversation with one customer.'),
  lastInboundAt: nullableTime('When the customer, or one of the group, last wrote.'),
  lastCallAt: nullableTime('When the customer last called, or accepted a call.'),
  expiresAt: Type.String({
    format: 'date-time',
    description: 'When the window ends, unless they write again.',
  }),
});

const EVERY_NUMBER = 'The number of yours that it is about; null for all of them.';

const Preference = dataOf({
  customer: Type.Object(PERSON, { description: 'Whose wish it is.' }),
  phoneNumberId: nullableText(EVERY_NUMBER),
  scope: Type.String({ description: '`marketing`, or `all`: nothing but within the service window.' }),
  state: Type.String({ description: '`stop` or `resume`.' }),
  source: Type.String({
    description: 'Who said it: `upstream`, `error_131050`, `keyword`, `api` or `portal`.',
  }),
  since: Type.String({ format: 'date-time', description: 'Since when it is so.' }),
});

export const EVENT_BODIES = {
  message: envelopeOf(
    'MessageEvent',
    'message',
    dataOf({ metadata: Metadata, contacts: Contacts, message: InboundMessage, value: Others }),
  ),
  status: envelopeOf(
    'StatusEvent',
    'status',
    dataOf({ metadata: Metadata, contacts: Type.Optional(Contacts), status: MessageStatus, value: Others }),
  ),
  payment: envelopeOf('PaymentEvent', 'payment', Payment),
  order: envelopeOf('OrderEvent', 'order', Order),
  'media.ready': envelopeOf('MediaReadyEvent', 'media.ready', ReadyMedia),
  test: envelopeOf(
    'TestEvent',
    'test',
    dataOf({
      message: Type.String({ description: 'Always the same sentence.' }),
      businessName: Type.String({ description: 'The name of the tenant.' }),
    }),
  ),
  'window.closing': envelopeOf('WindowClosingEvent', 'window.closing', ClosingWindow),
  preference: envelopeOf(
    'PreferenceEvent',
    'preference',
    Preference,
    Type.Union([Type.String(), Type.Null()], { description: EVERY_NUMBER }),
  ),
} satisfies Record<CoreEventType, TSchema>;

/** Of the events that it holds each is as it would have come alone. */
export const MESSAGE_BATCH_BODY = named('MessageBatchEvent', {
  eventType: Type.Literal(MESSAGE_BATCH, { description: 'Several events in one request.' }),
  eventId: Type.String({ description: 'The id of the batch, as `batchId` in the delivery log.' }),
  count: Type.Integer({ minimum: 2, maximum: 100, description: 'How many events it holds.' }),
  events: Type.Array(EVENT_BODIES.message, {
    description: 'The events, the oldest first, each as it would have come alone.',
  }),
});

export const UPSTREAM_EVENT_BODY = named('UpstreamEvent', {
  eventType: Type.String({
    pattern: UPSTREAM_TYPE_PATTERN,
    description: '`upstream.` and the field.',
    examples: ['upstream.account_update'],
  }),
  ...envelopeMembers(
    Type.Union([Type.String(), Type.Null()], {
      description: 'The number that the value names; null where it names none.',
    }),
    dataOf({
      field: Type.String({ description: 'The field, as upstream calls it.' }),
      value: Type.Unknown({ description: 'What upstream reports, unmodified.' }),
    }),
  ),
});
