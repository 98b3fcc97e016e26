import { webhookHeaders } from '../../../engine/deliveries/webhook-request.ts';
import {
  type CoreEventType,
  EVENT_TYPES,
  MESSAGE_BATCH,
  type SentEventType,
  upstreamTypeOf,
} from '../../../platform/event-type.ts';
import { KNOWN_FIELDS, UPSTREAM_FIELDS } from '../../../platform/upstream-fields.ts';
import { type Components, documentSchema } from '../schemas.ts';
import { EVENT_BODIES, MESSAGE_BATCH_BODY, UPSTREAM_EVENT_BODY } from './event-body-schemas.ts';
import { upstreamExample } from './upstream-examples.ts';
import { BATCH_EXAMPLE, WEBHOOK_EXAMPLES } from './webhook-examples.ts';

type Json = Record<string, unknown>;

type About = { summary: string; description: string };

const ABOUT: Readonly<Record<CoreEventType, About>> = {
  message: {
    summary: 'A customer wrote',
    description: 'Every inbound type is passed on. Media follow with `media.ready`.',
  },
  status: {
    summary: 'A message that you sent got another status',
    description: 'Statuses can be missing, late and in any order.',
  },
  payment: { summary: 'A payment changed', description: 'Such updates never come as `status`.' },
  order: {
    summary: 'A customer sent a cart',
    description: 'The same cart also comes as a `message` of type `order`.',
  },
  'media.ready': {
    summary: 'The media of a message is stored',
    description: 'Comes after its `message`; `data.mediaUrl` serves the file.',
  },
  test: {
    summary: 'A test of the endpoint',
    description: 'Sent on request only, whatever types the endpoint takes.',
  },
  'window.closing': {
    summary: 'The customer service window of a conversation closes soon',
    description:
      'Only for endpoints whose `eventTypes` name it, `windowClosingMinutes` before the end: once for each window, and never when it has closed.',
  },
  preference: {
    summary: 'A customer stopped or resumed messages',
    description:
      'Only for endpoints whose `eventTypes` name it, with who said it: upstream, the customer by a word of yours, your API or your team. The events of a customer share an `eventId` and their order.',
  },
};

const ABOUT_BATCH: About = {
  summary: 'Several messages of one conversation',
  description:
    'Only for endpoints with `bufferSeconds`. A 2xx response accepts all of them, anything else none. One message alone comes as `message`.',
};

/** What the headers of a webhook say. */
export const HEADER_DESCRIPTIONS: Readonly<Record<string, string>> = {
  'webhook-id': 'Our id of the event, the same over attempts and endpoints. Deduplicate by it.',
  'webhook-timestamp': 'When this attempt was made, in seconds since 1970.',
  'webhook-signature':
    'Standard Webhooks: `v1,` and base64 of HMAC-SHA256 over id, timestamp and raw body with dots between; a list separated by spaces while a secret is rotated. With `asymmetricSignature` also `v1a,` and base64 of an Ed25519 signature.',
  'X-Service-Signature': 'As webhook-signature, unless the endpoint has another signature profile.',
  'Idempotency-Key': 'As webhook-id.',
  'X-Service-Event-Type': '`eventType` of the body.',
  'X-Service-Event-Id': '`eventId` of the body; what is not visible ASCII is percent-encoded.',
  'X-Service-Delivery-Id': 'This event for this endpoint, the same over attempts.',
  'X-Service-Attempt': '1 for the first attempt.',
  'X-Service-Sequence': 'The number of the event within its ordering key.',
  'X-Service-Replay': '`true` when the event is sent again on request; otherwise missing.',
};

export function webhookOperations(components: Components): Json {
  const core = EVENT_TYPES.map((type) => {
    const schema = documentSchema(EVENT_BODIES[type], components);
    return webhookOperation({
      type,
      schema,
      name: nameOf(schema),
      about: ABOUT[type],
      example: WEBHOOK_EXAMPLES[type],
    });
  });
  const batchSchema = documentSchema(MESSAGE_BATCH_BODY, components);
  const batch = webhookOperation({
    type: MESSAGE_BATCH,
    schema: batchSchema,
    name: nameOf(batchSchema),
    about: ABOUT_BATCH,
    example: BATCH_EXAMPLE,
  });
  const schema = documentSchema(UPSTREAM_EVENT_BODY, components);
  const upstream = KNOWN_FIELDS.map((field) =>
    webhookOperation({
      type: upstreamTypeOf(field),
      schema,
      example: upstreamExample(field),
      name: `Upstream${field.split('_').map(capitalized).join('')}Event`,
      about: { summary: UPSTREAM_FIELDS[field], description: ON_REQUEST },
    }),
  );
  return Object.fromEntries([...core, batch, ...upstream]);
}

const ON_REQUEST =
  'Only for endpoints whose `eventTypes` name it or `upstream.*`. `data.value` is what upstream reports, unmodified.';

function capitalized(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}

type Documented = { type: SentEventType; schema: Json; name: string; about: About; example: unknown };

function webhookOperation({ type, schema, name, about, example }: Documented): [string, { post: Json }] {
  const post = {
    operationId: `receive${name}`,
    ...about,
    security: [],
    tags: ['Webhooks'],
    parameters: headerParameters(type, (example as { eventId: string }).eventId),
    requestBody: {
      required: true,
      content: { 'application/json': { schema, examples: { example: { value: example } } } },
    },
    responses: {
      '2XX': { description: 'The event is delivered; the content of the answer does not matter.' },
      410: { description: 'The endpoint is switched off; its events wait.' },
      default: { description: 'Tried again later, after the schedule of the endpoint or Retry-After.' },
    },
  };
  return [type, { post }];
}

/** Taken from the headers as they are sent, so that none is missing. */
function headerParameters(type: SentEventType, eventId: string): Json[] {
  const headers = webhookHeaders({
    webhookId: 'evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061',
    timestampSeconds: 1_790_000_010,
    signature: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
    eventType: type,
    eventId,
    deliveryId: 'dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062',
    attempt: 1,
    sequence: 1,
    replay: true,
  });
  return Object.entries(headers)
    .filter(([name]) => HEADER_DESCRIPTIONS[name] !== undefined)
    .map(([name, example]) => ({
      name,
      in: 'header',
      required: name !== 'X-Service-Replay',
      description: HEADER_DESCRIPTIONS[name],
      schema: { type: 'string' },
      example,
    }));
}

function nameOf(schema: Json): string {
  return String(schema.$ref).split('/').at(-1) ?? '';
}
