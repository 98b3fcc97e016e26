import { Type } from 'typebox';
import { EVENT_TYPES } from '../../../domain/event-type.ts';
import { nullable } from '../nullable.ts';

export const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'dropped'] as const;

const DATE_TIME = Type.String({ format: 'date-time' });

const EVENT_MEMBERS = {
  id: Type.String(),
  eventType: Type.Enum([...EVENT_TYPES]),
  eventId: Type.String(),
  phoneNumberId: Type.String(),
  sequence: Type.Integer(),
  createdAt: DATE_TIME,
  occurredAt: nullable(DATE_TIME),
  body: nullable(Type.Object({}, { additionalProperties: true })),
};

/** An event of the list: at how many endpoints it stands how. */
export const EventItem = Type.Object(
  {
    ...EVENT_MEMBERS,
    deliverySummary: Type.Object({
      pending: Type.Integer(),
      delivered: Type.Integer(),
      failed: Type.Integer(),
      dropped: Type.Integer(),
    }),
  },
  { title: 'Event' },
);

const TextRecord = Type.Record(Type.String(), Type.String());

const Attempt = Type.Object(
  {
    attempt: Type.Integer(),
    startedAt: DATE_TIME,
    durationMs: Type.Number(),
    timings: Type.Object({}, { additionalProperties: true }),
    statusCode: nullable(Type.Integer()),
    error: nullable(Type.Object({ class: Type.String(), message: Type.String() })),
    url: Type.String(),
    requestHeaders: TextRecord,
    responseHeaders: nullable(TextRecord),
    responseBody: nullable(Type.String()),
  },
  { title: 'DeliveryAttempt' },
);

const Delivery = Type.Object(
  {
    id: Type.String(),
    endpointId: Type.String(),
    state: Type.Enum([...DELIVERY_STATES]),
    attemptCount: Type.Integer(),
    lastStatusCode: nullable(Type.Integer()),
    lastError: nullable(Type.String()),
    nextAttemptAt: nullable(DATE_TIME),
    steppedAsideAt: nullable(DATE_TIME),
    createdAt: DATE_TIME,
    finishedAt: nullable(DATE_TIME),
    workflowId: nullable(Type.String()),
    replayId: nullable(Type.String()),
    replayOf: nullable(Type.String()),
    attempts: Type.Array(Attempt),
  },
  { title: 'Delivery' },
);

/** One event with its deliveries, the newest first, and their attempts, the oldest first. */
export const EventDetails = Type.Object(
  { ...EVENT_MEMBERS, deliveries: Type.Array(Delivery) },
  { title: 'EventDetails' },
);
