import { serializeEvent } from '../domain/envelope.ts';
import type { EventType } from '../domain/event-type.ts';
import { laneOf } from '../domain/ordering-key.ts';
import { dayOfUuidV7, uuidV7 } from '../domain/uuid-v7.ts';
import type { Transaction } from './database.ts';
import { claimedOf, claimParameters, type DirectClaimer, releaseEvent, wantedBy } from './delivery-queue.ts';
import { lockPublishing } from './locks.ts';
import { drawSequences } from './ordering-keys.ts';
import type { ClaimedDelivery } from './session-claims.ts';
import { execute, query } from './sql.ts';
import { endpointsOfWabas, type Subscriber } from './subscribers.ts';

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

export type PublishedEvent = NewEvent & {
  day: string;
  uuid: string;
  lane: string;
  sequence: string;
  /** Null while the event is reserved. */
  body: Buffer | null;
};

export type Published = {
  events: PublishedEvent[];
  /** Deliveries that `claimer` claimed: to be attempted after the commit. */
  claimed: ClaimedDelivery[];
};

/** What publishing needs to know beforehand: it can be asked while the rest of the events is still being made. */
export type PublishingGround = { sequences: readonly string[]; subscribers: readonly Subscriber[] };

/** Numbers the events within their keys and finds who receives them. The caller holds the publishing lock (locks.ts). */
export async function preparePublishing(
  trx: Transaction,
  events: readonly Pick<NewEvent, 'wabaId' | 'laneKey'>[],
): Promise<PublishingGround> {
  if (events.length === 0) return { sequences: [], subscribers: [] };
  const [sequences, subscribers] = await Promise.all([
    drawSequences(trx, events),
    endpointsOfWabas(trx, [...new Set(events.map((event) => event.wabaId))]),
  ]);
  return { sequences, subscribers };
}

/**
 * Stores prepared events in the order given, each serialized once, and queues a delivery for every subscribed
 * endpoint. Wakes the dispatcher when the transaction commits.
 */
export async function publishPrepared(
  trx: Transaction,
  events: readonly NewEvent[],
  { sequences, subscribers }: PublishingGround,
  options: { occurredAt: Date; claimer: DirectClaimer | null },
): Promise<Published> {
  if (events.length === 0) return { events: [], claimed: [] };
  const published = number(events, sequences, options.occurredAt);
  const deliveries = fanOut(published, subscribers);
  const claimed = await store(trx, published, deliveries, options);
  if (claimed.length < deliveries.length) await wakeDispatcher(trx);
  return { events: published, claimed: claimed.flatMap(claimOf) };
}

/** Publishes events in one go. */
export async function publishEvents(
  trx: Transaction,
  events: readonly NewEvent[],
  occurredAt: Date,
): Promise<PublishedEvent[]> {
  await lockPublishing(trx);
  const ground = await preparePublishing(trx, events);
  const { events: published } = await publishPrepared(trx, events, ground, { occurredAt, claimer: null });
  return published;
}

/** Stores events without queueing deliveries: for the `test` event, which goes to one chosen endpoint. */
export async function insertEvents(
  trx: Transaction,
  events: readonly NewEvent[],
  occurredAt: Date,
): Promise<PublishedEvent[]> {
  const published = number(events, await drawSequences(trx, events), occurredAt);
  await store(trx, published, [], { occurredAt, claimer: null });
  return published;
}

function number(
  events: readonly NewEvent[],
  sequences: readonly string[],
  occurredAt: Date,
): PublishedEvent[] {
  return events.map((event, index) => {
    const uuid = uuidV7(occurredAt.getTime());
    const body = event.dataJson === null ? null : bodyOf(event, event.dataJson, occurredAt);
    const sequence = sequences[index] ?? '1';
    return { ...event, uuid, day: dayOfUuidV7(uuid), lane: laneOf(event.laneKey), sequence, body };
  });
}

/** Returns the deliveries that were claimed. */
async function store(
  trx: Transaction,
  published: readonly PublishedEvent[],
  deliveries: readonly PlannedDelivery[],
  { occurredAt, claimer }: { occurredAt: Date; claimer: DirectClaimer | null },
): Promise<PlannedDelivery[]> {
  const wanted = wantedBy(claimer, deliveries);
  const [row] = await query<{ heads: string[] | null }>(
    trx,
    `select publish_events(:days, :ids, :wabaIds, :tenantIds, :phoneNumberIds, :eventTypes, :eventIds, :eventLanes,
                           :sequences, :conversationIds, :messageIds, :bodies, :occurredAt, :deliveryEvents,
                           :endpointIds, :lanes, :deliveryDays, :deliveryIds, :claimed, :token, :leaseMs) as heads`,
    {
      ...eventColumns(published),
      occurredAt,
      deliveryEvents: deliveries.map((d) => d.eventNumber),
      endpointIds: deliveries.map((d) => d.endpointId),
      lanes: deliveries.map((d) => d.lane),
      deliveryDays: deliveries.map((d) => d.deliveryDay),
      deliveryIds: deliveries.map((d) => d.deliveryId),
      ...claimParameters(deliveries, wanted, claimer),
    },
  );
  return claimedOf(wanted, row?.heads ?? null);
}

function eventColumns(published: readonly PublishedEvent[]) {
  return {
    days: published.map((event) => event.day),
    ids: published.map((event) => event.uuid),
    wabaIds: published.map((event) => event.wabaId),
    tenantIds: published.map((event) => event.tenantId),
    phoneNumberIds: published.map((event) => event.phoneNumberId),
    eventTypes: published.map((event) => event.type),
    eventIds: published.map((event) => event.eventId),
    eventLanes: published.map((event) => event.lane),
    sequences: published.map((event) => event.sequence),
    conversationIds: published.map((event) => event.conversationId),
    messageIds: published.map((event) => event.messageId),
    bodies: published.map((event) => event.body),
  };
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

type PlannedDelivery = ReturnType<typeof newDelivery> & {
  event: PublishedEvent;
  /** Its place among the events, from 1. */
  eventNumber: number;
  endpointVersion: number;
};

function fanOut(events: readonly PublishedEvent[], subscribers: readonly Subscriber[]): PlannedDelivery[] {
  return events.flatMap((event, index) =>
    subscribers
      .filter((endpoint) => wants(endpoint, event))
      .map((endpoint) => {
        const open = endpoint.mode === 'open';
        const delivery = newDelivery(event, endpoint.id, laneAt(endpoint, event), open);
        return { ...delivery, event, eventNumber: index + 1, endpointVersion: endpoint.version };
      }),
  );
}

function claimOf(delivery: PlannedDelivery): ClaimedDelivery[] {
  const { event, endpointVersion, deliveryId, deliveryDay, endpointId, eventDay, eventUuid } = delivery;
  if (event.body === null) return [];
  return [
    {
      ...{ deliveryId, deliveryDay, endpointId, endpointVersion, eventDay, eventUuid },
      ...{ attempts: 0, probes: 0, replay: false },
      ...{ eventType: event.type, eventId: event.eventId, sequence: event.sequence, body: event.body },
    },
  ];
}

/** The lane that an event takes at an endpoint; a wider order scope puts more events into one. */
function laneAt({ orderScope }: Subscriber, event: PublishedEvent): string {
  if (orderScope === 'endpoint') return 'endpoint';
  if (orderScope === 'conversation' && event.conversationId !== null) {
    return `conversation/${event.conversationId}`;
  }
  return event.lane;
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

/** One delivery of an event, to be stored and queued. `open`: its endpoint takes deliveries at present. */
export function newDelivery(event: PublishedEvent, endpointId: string, lane: string, open: boolean) {
  const deliveryId = uuidV7(Date.now());
  return {
    endpointId,
    wabaId: event.wabaId,
    lane,
    released: event.body !== null,
    open,
    deliveryDay: dayOfUuidV7(deliveryId),
    deliveryId,
    eventDay: event.day,
    eventUuid: event.uuid,
  };
}

function wants({ wabaId, eventTypes, phoneNumberIds }: Subscriber, event: PublishedEvent): boolean {
  return (
    wabaId === event.wabaId &&
    (eventTypes === null || eventTypes.includes(event.type)) &&
    (phoneNumberIds === null || phoneNumberIds.includes(event.phoneNumberId))
  );
}
