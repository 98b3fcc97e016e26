import { type Static, Type } from 'typebox';
import { sentHeaders } from '../../engine/deliveries/webhook-request.ts';
import {
  DELIVERY_STATES,
  type EventAttempt,
  type LoggedDelivery,
  listDeliveryAttempts,
  listEventDeliveries,
  summarizeDeliveries,
} from '../../features/delivery-log/deliveries.ts';
import {
  type EventFilter,
  findEvent,
  type ListedEvent,
  listEvents,
  publishingHorizonMs,
  readEventBodies,
} from '../../features/delivery-log/events.ts';
import { endpointsThatFilter } from '../../features/endpoints/filtered-endpoints.ts';
import type { EventType } from '../../platform/event-type.ts';
import { EventTypeSchema } from '../../platform/event-type-schema.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { eventUuidOf, publicBatchId, publicDeliveryId, publicEventId } from '../../platform/public-ids.ts';
import { notFound } from '../errors/api-error.ts';
import { orderParameter, PAGE_PARAMETERS, walkOf } from '../external/page.ts';
import {
  closed,
  listOf,
  optionalParameter,
  sendJsonText,
  sendListText,
  Time,
  timeOf,
  upstreamText,
} from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';
import { EventDetails, EventItem, EventParams } from './event-schemas.ts';

const EventQuery = closed({
  ...PAGE_PARAMETERS,
  order: orderParameter(
    '`asc` lists without gaps, about two seconds behind, and always gives a cursor to continue from later.',
    'asc',
  ),
  type: optionalParameter(
    EventTypeSchema,
    'Events of this type only; `upstream.*`: of all fields of upstream except the six. Without it, the list has the six only.',
    'message',
  ),
  eventId: optionalParameter(
    upstreamText(1_024),
    'Events with this `eventId` only.',
    'wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUZFOERGMUE1QTE5ODA0OTNDQQA=',
  ),
  phoneNumberId: optionalParameter(upstreamText(128), 'Events of this number only.', '800000000000111'),
  state: optionalParameter(
    Type.Enum([...DELIVERY_STATES]),
    'Events in this state at one endpoint at least.',
    'failed',
  ),
  since: optionalParameter(Time, 'Events stored at this time or later.', '2026-11-19T00:00:00Z'),
  until: optionalParameter(Time, 'Events stored before this time.', '2026-11-21T00:00:00Z'),
});

const list = restOperation({
  id: 'listEvents',
  method: 'GET',
  path: '/api/external/events',
  scope: 'readEvents',
  summary: 'List events',
  description:
    'The events for webhook endpoints, sent or pending, the newest first; `body` is the body of the webhook, byte for byte. With `order=asc` and the cursor of the last page a tenant that was down reads every event that it missed.',
  tag: 'Events',
  query: EventQuery,
  answers: {
    200: {
      description: 'A page of events. It can hold fewer than `limit`, even none, although `hasMore` is true.',
      schema: listOf(EventItem),
      example: { hasMore: true, nextCursor: 'AAABlq3kZ0B2' },
    },
  },
  // In ascending order the list has no gaps: it ends before events that other transactions may still put in between,
  // and its cursor goes on from there later.
  run: async ({ database, wabaId, cursors, reply }, input) => {
    const filter = filterOf(input);
    const { order, after, limit, nextCursor } = walkOf(cursors, [wabaId, 'events'], input, filter);
    const [afterId = null] = after;
    if (order === 'asc') {
      const horizonMs = await publishingHorizonMs(database, wabaId);
      filter.untilMs = Math.min(filter.untilMs ?? horizonMs, horizonMs);
    }
    const page = await listEvents(database, wabaId, filter, { order, afterId, limit });
    const { events, hasMore, position } = page;
    const [summaries, bodies] = await Promise.all([
      summarizeDeliveries(database, wabaId, events),
      readEventBodies(database, wabaId, events),
    ]);
    const data = events.map((event) =>
      eventJson(event, bodies.get(event.id), { deliverySummary: summaries.get(event.id) }),
    );
    const next = nextCursor(position === null ? null : [position], hasMore);
    return sendListText(reply, data, { hasMore, nextCursor: next });
  },
});

function filterOf(query: Static<typeof EventQuery>): EventFilter {
  return {
    // A type that no event can have selects none.
    eventTypes: query.type === undefined ? null : [query.type as EventType],
    eventId: query.eventId ?? null,
    phoneNumberId: query.phoneNumberId ?? null,
    deliveryState: query.state ?? null,
    sinceMs: timeOf('since', query.since)?.getTime() ?? null,
    untilMs: timeOf('until', query.until)?.getTime() ?? null,
  };
}

/** The newest of each are shown: an event can be replayed often, and a dead endpoint probed for days. */
const MAX_DELIVERIES = 50;
const MAX_ATTEMPTS_EACH = 25;

const get = restOperation({
  id: 'getEvent',
  method: 'GET',
  path: '/api/external/events/:id',
  scope: 'readEvents',
  summary: 'Get an event',
  description:
    'With its newest 50 deliveries and their newest 25 attempts each. Signatures and the values of custom headers are left out.',
  tag: 'Events',
  params: EventParams,
  answers: { 200: { description: 'The event.', schema: EventDetails } },
  run: async ({ database, wabaId, reply }, { id }) => {
    const event = await eventOfPath(database, wabaId, id);
    const deliveries = await listEventDeliveries(database, wabaId, event, MAX_DELIVERIES);
    const ids = deliveries.map((delivery) => delivery.id);
    const [attempts, bodies] = await Promise.all([
      listDeliveryAttempts(database, wabaId, ids, MAX_ATTEMPTS_EACH),
      readEventBodies(database, wabaId, [event]),
    ]);
    const filteredEndpointIds = await endpointsThatFilter(database, wabaId, {
      event,
      body: bodies.get(event.id),
    });
    const byDelivery = Map.groupBy(attempts, ({ deliveryId }) => deliveryId);
    const shown = deliveries.map((delivery) =>
      deliveryOf(event, delivery, byDelivery.get(delivery.id) ?? []),
    );
    return sendJsonText(
      reply,
      eventJson(event, bodies.get(event.id), { filteredEndpointIds, deliveries: shown }),
    );
  },
});

export const EVENT_OPERATIONS = [list, get];

/** Throws ApiError 404, also for another WABA's. */
export async function eventOfPath(database: Database, wabaId: string, id: string): Promise<ListedEvent> {
  const uuid = eventUuidOf(id);
  const event = uuid === null ? null : await findEvent(database, wabaId, uuid);
  if (event === null) throw notFound();
  return event;
}

/** The body stands in the JSON text exactly as it is sent; `members` come before it. */
export function eventJson(event: ListedEvent, body: string | undefined, members: object): string {
  const known = JSON.stringify({
    id: publicEventId(event.id),
    eventType: event.eventType,
    eventId: event.eventId,
    phoneNumberId: event.phoneNumberId,
    sequence: Number(event.sequence),
    createdAt: event.createdAt.toISOString(),
    occurredAt: event.occurredAt?.toISOString() ?? null,
    ...members,
  });
  return `${known.slice(0, -1)},"body":${body ?? 'null'}}`;
}

function deliveryOf(event: ListedEvent, delivery: LoggedDelivery, attempts: readonly EventAttempt[]) {
  const { id, attempts: attemptCount, replayOf, sentWith, ...shown } = delivery;
  return {
    id: publicDeliveryId(id),
    ...shown,
    attemptCount,
    replayOf: replayOf === null ? null : publicDeliveryId(replayOf),
    batchId: sentWith === null ? null : publicBatchId(sentWith),
    attempts: attempts.map((attempt) => ({
      ...attemptOf(attempt),
      requestHeaders: sentHeaders({ event, attempt, delivery: { ...delivery, eventUuid: event.id } }),
    })),
  };
}

function attemptOf(logged: EventAttempt) {
  const { deliveryId, errorClass, errorMessage, responseBody, userAgent, customHeaders, ...attempt } = logged;
  return {
    ...attempt,
    error: errorClass === null ? null : { class: errorClass, message: errorMessage ?? '' },
    // Whatever the receiver sent: bytes that are no UTF-8 become U+FFFD.
    responseBody: responseBody?.toString('utf8') ?? null,
  };
}
