import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { flowMessage, listMessage, productListMessage } from './kinds/interactive-kinds.ts';
import { orderDetailsMessage } from './kinds/interactive-order-details.ts';
import {
  Body,
  interactiveKind,
  MEDIA_SOURCE,
  type MessageKind,
  messageKind,
  strict,
  text,
  UpstreamId,
  WebAddress,
} from './kinds/message-kind.ts';
import { templateMessage } from './kinds/template-message.ts';
import { exactlyOne, firstProblem, noneTwice } from './problems.ts';

const MAX_CONTACTS = 257;
const Word = Type.Optional(text(1_000));

const listOf = <T extends TProperties>(properties: T) =>
  Type.Optional(Type.Array(strict(properties), { maxItems: 100 }));

const Contact = strict({
  name: strict({
    formatted_name: text(1_000),
    first_name: Word,
    last_name: Word,
    middle_name: Word,
    prefix: Word,
    suffix: Word,
  }),
  phones: listOf({ phone: Word, wa_id: Word, type: Word }),
  emails: listOf({ email: Word, type: Word }),
  addresses: listOf({
    street: Word,
    city: Word,
    state: Word,
    zip: Word,
    country: Word,
    country_code: Word,
    type: Word,
  }),
  org: Type.Optional(strict({ company: Word, department: Word, title: Word })),
  urls: listOf({ url: Word, type: Word }),
  birthday: Type.Optional(Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' })),
});

/** The one content that is a list. */
const ContactsContent = Type.Array(Contact, { minItems: 1, maxItems: MAX_CONTACTS });

const Button = strict({
  type: Type.Literal('reply'),
  reply: strict({ id: text(256), title: text(20) }),
});

type Content = { action: { buttons: { reply: { id: string; title: string } }[] } };

const buttonMessage = interactiveKind({
  interactiveType: 'button',
  header: { types: ['text', 'image', 'video', 'document'] },
  members: {
    body: Body,
    action: strict({ buttons: Type.Array(Button, { minItems: 1, maxItems: 3 }) }),
  },
  check: ({ action: { buttons } }: Content, path) => {
    const replies = (member: 'id' | 'title') =>
      buttons.map(
        ({ reply }, index) => [`${path}/action/buttons/${index}/reply/${member}`, reply[member]] as const,
      );
    return firstProblem(
      () => noneTwice(replies('id')),
      () => noneTwice(replies('title')),
    );
  },
});

const Caption = Type.Optional(text(1_024));

const check = (content: Record<string, unknown>, path: string) => exactlyOne(content, ['id', 'link'], path);

const captioned = strict({ ...MEDIA_SOURCE, caption: Caption });

/** Messages that are a file. */
const mediaMessages = [
  messageKind({ type: 'image', content: captioned, check }),
  messageKind({ type: 'video', content: captioned, check }),
  messageKind({
    type: 'audio',
    content: strict({ ...MEDIA_SOURCE, voice: Type.Optional(Type.Boolean()) }),
    check,
  }),
  messageKind({
    type: 'document',
    content: strict({ ...MEDIA_SOURCE, caption: Caption, filename: Type.Optional(text(240)) }),
    check,
  }),
  messageKind({ type: 'sticker', content: strict(MEDIA_SOURCE), check }),
];

const MAX_SAVED_ADDRESSES = 100;
/** Members differ from country to country. */
const Values = Type.Object({}, { additionalProperties: Type.String({ maxLength: 1_000 }) });

const addressMessage = interactiveKind({
  interactiveType: 'address_message',
  header: { types: ['text', 'image', 'video', 'document'] },
  members: {
    body: Body,
    action: strict({
      name: Type.Literal('address_message'),
      parameters: strict({
        country: Type.String({ pattern: '^[A-Z]{2}$' }),
        values: Type.Optional(Values),
        saved_addresses: Type.Optional(
          Type.Array(strict({ id: text(256), value: Values }), { maxItems: MAX_SAVED_ADDRESSES }),
        ),
        validation_errors: Type.Optional(Values),
      }),
    }),
  },
});

const orderStatusMessage = interactiveKind({
  interactiveType: 'order_status',
  members: {
    body: Body,
    action: strict({
      name: Type.Literal('review_order'),
      parameters: strict({
        reference_id: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,35}$' }),
        order: strict({
          status: Type.Enum(['processing', 'partially_shipped', 'shipped', 'completed', 'canceled']),
          description: Type.Optional(text(120)),
        }),
      }),
    }),
  },
});

const degrees = (maximum: number) => Type.Number({ minimum: -maximum, maximum });
/** Upstream’s own examples give them as text too. */
const degreesText = Type.String({ pattern: '^-?\\d{1,3}(\\.\\d{1,20})?$' });

const locationMessage = messageKind({
  type: 'location',
  content: strict({
    latitude: Type.Union([degrees(90), degreesText]),
    longitude: Type.Union([degrees(180), degreesText]),
    name: Type.Optional(text(1_000)),
    address: Type.Optional(text(1_000)),
  }),
});

const ctaUrlMessage = interactiveKind({
  interactiveType: 'cta_url',
  header: { types: ['text', 'image', 'video', 'document'] },
  members: {
    body: Body,
    action: strict({
      name: Type.Literal('cta_url'),
      parameters: strict({ display_text: text(20), url: WebAddress }),
    }),
  },
});

const catalogMessage = interactiveKind({
  interactiveType: 'catalog_message',
  members: {
    body: Body,
    action: strict({
      name: Type.Literal('catalog_message'),
      parameters: Type.Optional(strict({ thumbnail_product_retailer_id: Type.Optional(UpstreamId) })),
    }),
  },
});

const MAX_EMOJI_CHARS = 64;

/** An empty `emoji` takes the reaction back. */
const reactionMessage = messageKind({
  type: 'reaction',
  content: strict({ message_id: UpstreamId, emoji: Type.String({ maxLength: MAX_EMOJI_CHARS }) }),
});

const productMessage = interactiveKind({
  interactiveType: 'product',
  members: {
    body: Type.Optional(Body),
    action: strict({ catalog_id: UpstreamId, product_retailer_id: UpstreamId }),
  },
});

const textMessage = messageKind({
  type: 'text',
  content: strict({ body: text(4_096), preview_url: Type.Optional(Type.Boolean()) }),
});

const locationRequestMessage = interactiveKind({
  interactiveType: 'location_request_message',
  members: { body: Body, action: strict({ name: Type.Literal('send_location') }) },
});

const KINDS: readonly MessageKind[] = [
  textMessage,
  ...mediaMessages,
  templateMessage,
  locationMessage,
  reactionMessage,
  buttonMessage,
  listMessage,
  productMessage,
  productListMessage,
  catalogMessage,
  flowMessage,
  ctaUrlMessage,
  locationRequestMessage,
  addressMessage,
  orderDetailsMessage,
  orderStatusMessage,
];

const PHONE = '^\\+?[0-9 ().-]{4,32}$';
const BUSINESS_SCOPED_ID = '^[A-Z]{2}\\.(ENT\\.)?[A-Za-z0-9]{1,128}$';

/** Whom, and what goes with every kind of message. */
const COMMON = {
  phoneNumberId: text(64),
  to: Type.Optional(Type.String({ pattern: PHONE })),
  recipient: Type.Optional(Type.String({ pattern: BUSINESS_SCOPED_ID })),
  messaging_product: Type.Optional(Type.Literal('whatsapp')),
  recipient_type: Type.Optional(Type.Literal('individual')),
  context: Type.Optional(strict({ message_id: UpstreamId })),
  biz_opaque_callback_data: Type.Optional(text(512)),
  recipient_identity_key_hash: Type.Optional(text(512)),
  extra: Type.Optional(Type.Object({}, { additionalProperties: true })),
};

/** The members of a request as every kind has them. */
export type SendRequest = {
  phoneNumberId: string;
  to?: string;
  recipient?: string;
  type?: string;
  context?: { message_id: string };
  biz_opaque_callback_data?: string;
  recipient_identity_key_hash?: string;
  extra?: Record<string, unknown>;
} & Record<string, unknown>;

/** A form of the body, and what to check beyond its schema. */
export type SendForm = { schema: TSchema; content: string | null; check: MessageKind['check'] };

/** The form of a body; its title is its name in the description of the API. */
function sendForm(words: readonly (string | undefined)[], content: TProperties): TObject {
  const name = words
    .flatMap((word) => word?.split('_') ?? [])
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
  return Type.Object({ ...COMMON, ...content }, { additionalProperties: false, title: `Send${name}` });
}

/** The forms by `type`, or `interactive/<its type>`. */
export const SEND_FORMS: ReadonlyMap<string, SendForm> = new Map<string, SendForm>([
  ...KINDS.map(({ type, interactiveType, content, check }): [string, SendForm] => [
    interactiveType === undefined ? type : `${type}/${interactiveType}`,
    {
      schema: sendForm([type, interactiveType], { type: Type.Literal(type), [type]: content }),
      content: type,
      check,
    },
  ]),
  [
    'contacts',
    {
      schema: sendForm(['contacts'], { type: Type.Literal('contacts'), contacts: ContactsContent }),
      content: 'contacts',
      check: undefined,
    },
  ],
]);

const Extra = Type.Object({}, { additionalProperties: true });

/** Messages of a type that upstream has added: everything about them is in `extra`. */
export const NEW_TYPE: SendForm = {
  schema: sendForm(['new_type'], { extra: Extra }),
  content: null,
  check: undefined,
};

/** Interactive messages of a type that upstream has added. */
export const NEW_INTERACTIVE_TYPE: SendForm = {
  schema: sendForm(['new_interactive_type'], { type: Type.Literal('interactive'), extra: Extra }),
  content: null,
  check: undefined,
};

/** The body of a send, for the description of the API: exactly one of the forms. */
export const SendBody = Type.Union(
  [...[...SEND_FORMS.values()].map(({ schema }) => schema), NEW_TYPE.schema, NEW_INTERACTIVE_TYPE.schema],
  { title: 'MessageToSend' },
);

export const MESSAGE_TYPES: readonly string[] = [
  ...new Set([...SEND_FORMS.keys()].map((key) => key.split('/')[0] ?? '')),
];
export const INTERACTIVE_TYPES: readonly string[] = KINDS.flatMap((kind) => kind.interactiveType ?? []);
