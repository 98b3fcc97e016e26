import { serializeEvent } from '../domain/envelope.ts';
import type { EventType } from '../domain/event-type.ts';
import { laneOf } from '../domain/ordering-key.ts';
import { dayOfUuidV7, uuidV7 } from '../domain/uuid-v7.ts';
import type { Transaction } from './database.ts';
import { insertDeliveries } from './deliveries.ts';
import { enqueueDeliveries, releaseEvent } from './delivery-queue.ts';
import { drawSequences } from './ordering-keys.ts';
import { execute, query } from './sql.ts';
import { endpointsOfWabas, type Subscriber } from './webhook-endpoints.ts';

export type NewEvent = {
  wabaId: string;
  tenantId: string;
  phoneNumberId: string;
  type: EventType;
  eventId: string;
  /** Events with one lane key reach each endpoint one after the other. */
  laneKey: string;
  conversationId: string | null;
  messageId: string | null;
  /** JSON text of `data`; null reserves the event's place until `releaseReservedEvent`. */
  dataJson: string | null;
};

export type PublishedEvent = NewEvent & { day: string; uuid: string; lane: string; sequence: string };

/**
 * Stores events in the order given, each serialized once, and queues a delivery for every subscribed endpoint.
 * Wakes the dispatcher when the transaction commits.
 */
export async function publishEvents(
  trx: Transaction,
  events: readonly NewEvent[],
  occurredAt: Date,
): Promise<PublishedEvent[]> {
  if (events.length === 0) return [];
  const published = await insertEvents(trx, events, occurredAt);
  const subscribers = await endpointsOfWabas(trx, [...new Set(events.map((event) => event.wabaId))]);
  await fanOut(trx, published, subscribers);
  return published;
}

/** Stores events without queueing deliveries: for the `test` event, which goes to one chosen endpoint. */
export async function insertEvents(
  trx: Transaction,
  events: readonly NewEvent[],
  occurredAt: Date,
): Promise<PublishedEvent[]> {
  const sequences = await drawSequences(trx, events);
  const published = events.map((event, index) => {
    const uuid = uuidV7(occurredAt.getTime());
    const sequence = sequences[index] ?? '1';
    return { ...event, uuid, day: dayOfUuidV7(uuid), lane: laneOf(event.laneKey), sequence };
  });
  await execute(
    trx,
    `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence,
                         conversation_id, message_id, body, occurred_at)
     select * from unnest(?::date[], ?::uuid[], ?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[],
                          ?::bigint[], ?::bigint[], ?::bigint[], ?::bytea[], ?::timestamptz[])`,
    [
      published.map((event) => event.day),
      published.map((event) => event.uuid),
      published.map((event) => event.wabaId),
      published.map((event) => event.tenantId),
      published.map((event) => event.phoneNumberId),
      published.map((event) => event.type),
      published.map((event) => event.eventId),
      published.map((event) => event.lane),
      published.map((event) => event.sequence),
      published.map((event) => event.conversationId),
      published.map((event) => event.messageId),
      published.map((event) => (event.dataJson === null ? null : bodyOf(event, event.dataJson, occurredAt))),
      published.map((event) => (event.dataJson === null ? null : occurredAt)),
    ],
  );
  return published;
}

type EnvelopeParts = Pick<NewEvent, 'type' | 'tenantId' | 'wabaId' | 'phoneNumberId' | 'eventId'>;

/** The bytes of one event: made once, then only stored and sent. */
function bodyOf(event: EnvelopeParts, dataJson: string, occurredAt: Date): Buffer {
  return Buffer.from(
    serializeEvent({
      eventType: event.type,
      userId: event.tenantId,
      wabaId: event.wabaId,
      phoneNumberId: event.phoneNumberId,
      eventId: event.eventId,
      occurredAt,
      dataJson,
    }),
  );
}

async function fanOut(
  trx: Transaction,
  events: readonly PublishedEvent[],
  subscribers: readonly Subscriber[],
): Promise<void> {
  const deliveries = events.flatMap((event) =>
    subscribers
      .filter((endpoint) => endpoint.wabaId === event.wabaId && wants(endpoint, event.type))
      .map((endpoint) => newDelivery(event, endpoint.id)),
  );
  if (deliveries.length === 0) return;
  await insertDeliveries(trx, deliveries);
  await enqueueDeliveries(trx, deliveries);
  await wakeDispatcher(trx);
}

/** When the transaction commits. */
async function wakeDispatcher(trx: Transaction): Promise<void> {
  await execute(trx, `select pg_notify('heliograph_deliveries', '')`);
}

/**
 * Gives a reserved event its body and makes its deliveries claimable.
 * Returns false when it was released before: its bytes stay as they are.
 */
export async function releaseReservedEvent(
  trx: Transaction,
  event: { wabaId: string; day: string; uuid: string; dataJson: string },
  occurredAt: Date,
): Promise<boolean> {
  const [reserved] = await query<EnvelopeParts>(
    trx,
    `select event_type as type, tenant_id as "tenantId", waba_id as "wabaId", phone_number_id as "phoneNumberId",
            event_id as "eventId"
       from events where day = ? and id = ? and waba_id = ? and body is null for update`,
    [event.day, event.uuid, event.wabaId],
  );
  if (reserved === undefined) return false;
  await execute(trx, 'update events set body = ?, occurred_at = ? where day = ? and id = ?', [
    bodyOf(reserved, event.dataJson, occurredAt),
    occurredAt,
    event.day,
    event.uuid,
  ]);
  await releaseEvent(trx, event.uuid);
  await wakeDispatcher(trx);
  return true;
}

/** One delivery of an event, to be stored and queued. */
export function newDelivery(event: PublishedEvent, endpointId: string) {
  const deliveryId = uuidV7(Date.now());
  return {
    endpointId,
    wabaId: event.wabaId,
    lane: event.lane,
    released: event.dataJson !== null,
    deliveryDay: dayOfUuidV7(deliveryId),
    deliveryId,
    eventDay: event.day,
    eventUuid: event.uuid,
  };
}

function wants(endpoint: Subscriber, type: EventType): boolean {
  return endpoint.eventTypes === null || endpoint.eventTypes.includes(type);
}
