import { type TProperties, type TSchema, Type } from 'typebox';
import { File, NamedFile, optional, Text } from './shape.ts';

const listOf = <T extends TProperties>(properties: T) => Type.Array(optional(properties));

const Contact = Type.Object({
  name: Type.Object({
    formatted_name: Text,
    ...optional({ first_name: Text, last_name: Text, middle_name: Text, prefix: Text, suffix: Text })
      .properties,
  }),
  ...optional({
    phones: listOf({ phone: Text, wa_id: Text, type: Text }),
    emails: listOf({ email: Text, type: Text }),
    addresses: listOf({
      street: Text,
      city: Text,
      state: Text,
      zip: Text,
      country: Text,
      country_code: Text,
      type: Text,
    }),
    org: optional({ company: Text, department: Text, title: Text }),
    urls: listOf({ url: Text, type: Text }),
    birthday: Text,
  }).properties,
});

/** Upstream’s own examples give them as text too. */
const Degrees = Type.Union([Type.Number(), Text]);

const Anything = Type.Object({});

/** A parameter has `type` and the member of that name. */
const TemplateParameter = Type.Object({
  type: Text,
  ...optional({
    parameter_name: Text,
    text: Text,
    currency: Type.Object({ fallback_value: Text, code: Text, amount_1000: Type.Integer() }),
    date_time: Anything,
    image: File,
    video: File,
    document: NamedFile,
    location: Anything,
    payload: Text,
    action: Anything,
    coupon_code: Text,
    product: Type.Object({ product_retailer_id: Text, catalog_id: Text }),
    limited_time_offer: Anything,
    order_status: Anything,
  }).properties,
});

const COMPONENT = {
  type: Text,
  ...optional({
    sub_type: Text,
    index: Type.Union([Type.Integer(), Text]),
    parameters: Type.Array(TemplateParameter),
  }).properties,
};

const Card = Type.Object({
  card_index: Type.Optional(Type.Integer()),
  components: Type.Array(Type.Object(COMPONENT)),
});

const Template = Type.Object({
  name: Text,
  language: Type.Object({ code: Text, policy: Type.Optional(Text) }),
  components: Type.Optional(
    Type.Array(Type.Object({ ...COMPONENT, cards: Type.Optional(Type.Array(Card)) })),
  ),
});

const MAX_ID_CHARS = 512;

/** An id of upstream’s by which messages are looked up. */
export const MessageId = Type.String({ minLength: 1, maxLength: MAX_ID_CHARS });

export const CONTENT_SHAPES: ReadonlyMap<string, TSchema> = new Map<string, TSchema>(
  Object.entries({
    text: Type.Object({ body: Text, preview_url: Type.Optional(Type.Boolean()) }),
    image: optional({ ...File.properties, caption: Text }),
    video: optional({ ...File.properties, caption: Text }),
    audio: optional({ ...File.properties, voice: Type.Boolean() }),
    document: optional({ ...NamedFile.properties, caption: Text }),
    sticker: File,
    location: Type.Object({
      latitude: Degrees,
      longitude: Degrees,
      name: Type.Optional(Text),
      address: Type.Optional(Text),
    }),
    contacts: Type.Array(Contact),
    reaction: Type.Object({ message_id: MessageId, emoji: Type.Optional(Text) }),
    template: Template,
  }),
);
