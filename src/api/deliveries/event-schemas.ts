import { Type } from 'typebox';
import { DELIVERY_STATES } from '../../features/delivery-log/deliveries.ts';
import { SentEventTypeSchema } from '../../platform/event-type-schema.ts';
import { count, dateTime, idParams, named, nullable, text } from '../external/schema-kit.ts';
import { WEBHOOK_EXAMPLES } from '../openapi/webhooks/webhook-examples.ts';

const ID = 'evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061';

export const EventParams = idParams('The id of the event, as in the header `webhook-id`.', ID);

const EVENT_MEMBERS = {
  id: text(ID),
  eventType: SentEventTypeSchema,
  eventId: text('wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUZFOERGMUE1QTE5ODA0OTNDQQA='),
  phoneNumberId: nullable(Type.String(), '800000000000111'),
  sequence: count(1),
  createdAt: dateTime('2026-11-21T09:30:00.120Z'),
  occurredAt: nullable(dateTime(), '2026-11-21T09:30:00.123Z'),
  body: nullable(Type.Object({}, { additionalProperties: true }), WEBHOOK_EXAMPLES.message),
};

export const EventItem = named('Event', {
  ...EVENT_MEMBERS,
  deliverySummary: Type.Object({
    pending: Type.Integer(),
    delivered: count(1),
    failed: Type.Integer(),
    dropped: Type.Integer(),
  }),
});

const Attempt = named('DeliveryAttempt', {
  attempt: count(1),
  startedAt: dateTime('2026-11-21T09:30:00.140Z'),
  durationMs: Type.Number({ examples: [82.4] }),
  timings: Type.Object(
    {},
    {
      additionalProperties: true,
      examples: [{ dnsMs: 1.2, connectMs: 11.8, tlsMs: 18.3, firstByteMs: 79.9, reusedConnection: false }],
    },
  ),
  statusCode: nullable(Type.Integer(), 200),
  error: nullable(Type.Object({ class: Type.String(), message: Type.String() })),
  /** The origin, and a hash of the rest, which may be a credential. */
  url: text('https://shop.example/***6fc2d0'),
  requestHeaders: Type.Record(Type.String(), Type.String(), {
    examples: [{ 'content-type': 'application/json', 'webhook-id': ID }],
  }),
  responseHeaders: nullable(Type.Record(Type.String(), Type.String()), { 'content-type': 'text/plain' }),
  responseBody: nullable(Type.String(), 'ok'),
});

const Delivery = named('Delivery', {
  id: text('dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062'),
  endpointId: text('3'),
  state: Type.Enum([...DELIVERY_STATES], { examples: ['delivered'] }),
  attemptCount: count(1),
  lastStatusCode: nullable(Type.Integer(), 200),
  lastError: nullable(Type.String()),
  nextAttemptAt: nullable(dateTime()),
  steppedAsideAt: nullable(dateTime()),
  batchId: nullable(
    Type.String({
      description:
        'The `eventId` of the `message.batch` in which the message was sent with others, or is to be; null: it is sent alone.',
    }),
  ),
  createdAt: dateTime('2026-11-21T09:30:00.121Z'),
  finishedAt: nullable(dateTime(), '2026-11-21T09:30:00.223Z'),
  workflowId: nullable(Type.String()),
  replayId: nullable(Type.String()),
  replayOf: nullable(Type.String()),
  attempts: Type.Array(Attempt),
});

/** Its deliveries are the newest first, and their attempts the oldest first. */
export const EventDetails = named('EventDetails', {
  ...EVENT_MEMBERS,
  filteredEndpointIds: Type.Array(Type.String({ examples: ['4'] }), {
    description:
      'Endpoints that take events of this type and number and have no delivery of it, because their content filter, as it is now, does not take it.',
  }),
  deliveries: Type.Array(Delivery),
});
