import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { ContactsContent } from './kinds/contacts-message.ts';
import { addressMessage } from './kinds/interactive-address.ts';
import { buttonMessage } from './kinds/interactive-button.ts';
import { catalogMessage } from './kinds/interactive-catalog.ts';
import { ctaUrlMessage } from './kinds/interactive-cta-url.ts';
import { flowMessage } from './kinds/interactive-flow.ts';
import { listMessage } from './kinds/interactive-list.ts';
import { locationRequestMessage } from './kinds/interactive-location-request.ts';
import { orderDetailsMessage } from './kinds/interactive-order-details.ts';
import { orderStatusMessage } from './kinds/interactive-order-status.ts';
import { productMessage } from './kinds/interactive-product.ts';
import { productListMessage } from './kinds/interactive-product-list.ts';
import { locationMessage } from './kinds/location-message.ts';
import { mediaMessages } from './kinds/media-messages.ts';
import type { MessageKind } from './kinds/message-kind.ts';
import { reactionMessage } from './kinds/reaction-message.ts';
import { strict, text, UpstreamId } from './kinds/schema-parts.ts';
import { templateMessage } from './kinds/template-message.ts';
import { textMessage } from './kinds/text-message.ts';

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
