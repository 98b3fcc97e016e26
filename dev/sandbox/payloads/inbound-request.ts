import type { JsonObject } from './webhook-body.ts';

/** One product line of a cart. */
export type CartItem = { retailerId: string; quantity: number; itemPrice: number; currency: string };

/** What a caller may say about an inbound message; everything but the type has a default. */
export type InboundRequest = {
  type: string;
  /** Makes ids and the timestamp the same every time. */
  seed?: string;
  phoneNumberId?: string;
  timestampSeconds?: number;
  /** The customer's phone number in digits; the empty string sends a customer without one. */
  from?: string;
  name?: string;
  /** The customer's id at the business, made from the phone number unless given; the empty string sends none, as before 2026. */
  userId?: string;
  username?: string;
  /** The group that it is written in. */
  groupId?: string;
  /** The wamid of a message of the business that this one answers. */
  replyTo?: string;
  forwarded?: boolean;
  referral?: JsonObject;
  /** Members of the content object that replace or join the built ones. */
  fields?: JsonObject;
  /** Members of the message itself that replace or join the built ones. */
  messageFields?: JsonObject;

  body?: string;
  caption?: string;
  filename?: string;
  mediaId?: string;
  mimeType?: string;
  withUrl?: boolean;
  voice?: boolean;
  animated?: boolean;

  latitude?: number;
  longitude?: number;
  address?: string;

  /** Of `interactive`: button_reply, list_reply or nfm_reply. */
  interactiveType?: string;
  choiceId?: string;
  title?: string;
  description?: string;
  responseJson?: string;
  payload?: string;
  text?: string;
  emoji?: string;
  /** The message that a reaction, an edit or a revoke is about. */
  targetId?: string;

  catalogId?: string;
  items?: CartItem[];

  newPhone?: string;
  unsupportedType?: string;
  errorCode?: number;
};

const optional = {
  string: { type: 'string', maxLength: 100_000 },
  boolean: { type: 'boolean' },
  number: { type: 'number' },
  object: { type: 'object' },
} as const;

function properties(names: string, schema: object): Record<string, object> {
  return Object.fromEntries(names.split(' ').map((name) => [name, schema]));
}

const cartItemSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['retailerId', 'quantity', 'itemPrice', 'currency'],
  properties: {
    retailerId: { type: 'string', minLength: 1, maxLength: 200 },
    quantity: { type: 'integer', minimum: 1 },
    itemPrice: { type: 'number', minimum: 0 },
    currency: { type: 'string', minLength: 3, maxLength: 3 },
  },
} as const;

/** The JSON schema of InboundRequest. */
export const inboundRequestProperties = {
  type: { type: 'string', minLength: 1, maxLength: 100 },
  timestampSeconds: { type: 'integer', minimum: 0 },
  ...properties('seed phoneNumberId from name userId username groupId replyTo', optional.string),
  ...properties('body caption filename mediaId mimeType address interactiveType', optional.string),
  ...properties('choiceId title description responseJson payload text emoji targetId', optional.string),
  ...properties('catalogId newPhone unsupportedType', optional.string),
  ...properties('forwarded withUrl voice animated', optional.boolean),
  ...properties('latitude longitude errorCode', optional.number),
  ...properties('referral fields messageFields', optional.object),
  items: { type: 'array', minItems: 1, maxItems: 1000, items: cartItemSchema },
};
