import { type EventType, includesType } from '../../platform/event-type.ts';
import { tracing } from '../../platform/metrics/metrics.ts';
import { byteaArray, columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7, uuidV7 } from '../../platform/public-ids.ts';
import { endpointsOfWabas, type Subscriber } from '../endpoint/endpoint-settings.ts';
import { formatTakes } from '../endpoint/event-format.ts';
import type { ClaimedDelivery } from '../queue/claim.ts';
import { type DirectClaimer, planQueueing, wakeDispatcher } from '../queue/enqueue.ts';
import { keepOrderScopes } from '../queue/order-scope.ts';
import { lockPublishing } from '../queue/publishing-locks.ts';
import { contentJudge } from './content-filter.ts';
import { serializeEvent } from './envelope.ts';
import { laneOf } from './lanes.ts';

export type NewEvent = {
  wabaId: string;
  tenantId: string;
  /** Null for what concerns a whole WABA. */
  phoneNumberId: string | null;
  type: EventType;
  eventId: string;
  /** Events with one lane key reach each endpoint one after the other. */
  laneKey: string;
  conversationId: string | null;
  messageId: string | null;
  /** Of the message that the event is about, where `messageId` is not known yet. */
  upstreamId?: string;
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

/**
 * Who receives events of these WABAs: it can be asked while the events are still being made. Until the transaction ends,
 * none of these endpoints gets another order scope.
 */
export async function findSubscribers(trx: Transaction, wabaIds: readonly string[]): Promise<Subscriber[]> {
  const wabas = [...new Set(wabaIds)];
  if (wabas.length === 0) return [];
  const [, subscribers] = await Promise.all([keepOrderScopes(trx, wabas), endpointsOfWabas(trx, wabas)]);
  return subscribers;
}

/**
 * Stores events in the order given, each serialized once, and queues a delivery for every subscribed endpoint, in one
 * statement that is sent at once. Wakes the dispatcher when the transaction commits, if there is anything left for it.
 * The caller holds the publishing lock (publishing-locks.ts).
 */
export async function publishTo(
  trx: Transaction,
  subscribers: readonly Subscriber[],
  events: readonly NewEvent[],
  options: PublishOptions,
): Promise<Published> {
  if (events.length === 0) return { events: [], claimed: [] };
  const planned = planPublishing(subscribers, events, options);
  const sql = `select heads, last_numbers as "lastNumbers" from publish_events(${PUBLISH_PARAMETERS})`;
  const [row] = await query<StoredEvents>(trx, sql, planned.parameters);
  return planned.published(trx, row ?? { heads: null, lastNumbers: [] });
}

/** SQL: those of the function publish_events, by the names that `planPublishing` gives them. */
export const PUBLISH_PARAMETERS = `:keyWabas, :keys, :keyEvents, :eventKeys, :eventsBehind,
  :day, :uuid, :wabaId, :tenantId, :phoneNumberId, :type, :eventId, :conversationId, :messageId, :upstreamIds,
  :bodies, :occurredAt, :deliveryWabas, :endpointId, :lane, :deliveryDay, :deliveryId, :eventDay, :eventUuid, :released,
  :firsts, :claimed, :token, :leaseMs`;

type PublishOptions = { occurredAt: Date; claimer: DirectClaimer | null };

export type StoredEvents = { heads: string[] | null; lastNumbers: string[] };

/**
 * Serializes events and chooses who receives them. `parameters` are those of the function publish_events; `published` gets
 * its result.
 */
export function planPublishing(
  subscribers: readonly Subscriber[],
  events: readonly NewEvent[],
  { occurredAt, claimer }: PublishOptions,
) {
  const startMs = Date.now();
  const made = events.map((event) => makeEvent(event, occurredAt));
  const deliveries = fanOut(made, subscribers);
  const queued = planQueueing(deliveries, claimer);
  const keys = keysOf(made);
  const parameters = {
    ...keyColumns(keys),
    ...eventColumns(made),
    occurredAt,
    deliveryWabas: deliveries.map((d) => d.wabaId),
    ...queued.parameters,
  };
  const published = (database: Database, { heads, lastNumbers }: StoredEvents): Published => {
    tracing.note?.({ name: 'publish', about: made, startMs, endMs: Date.now() });
    const stored = made.map((event, index) => ({ ...event, sequence: keys.numberOf(index, lastNumbers) }));
    const claimed = queued.claimed(heads ?? []);
    if (claimed.length < (heads?.length ?? 0)) wakeDispatcher(database);
    if ((heads?.length ?? 0) < deliveries.length) claimer?.onFollowers?.();
    const lastOfLane = new Map(deliveries.map((delivery) => [placeOf(delivery), delivery]));
    const isFollowed = (delivery: PlannedDelivery) => lastOfLane.get(placeOf(delivery)) !== delivery;
    return {
      events: stored,
      claimed: claimed.map((delivery) => claimOf(delivery, stored, isFollowed(delivery))),
    };
  };
  return { parameters, published };
}

export async function publishEvents(
  trx: Transaction,
  events: readonly NewEvent[],
  occurredAt: Date,
): Promise<PublishedEvent[]> {
  await lockPublishing(trx);
  const subscribers = await findSubscribers(
    trx,
    events.map((event) => event.wabaId),
  );
  const published = await publishTo(trx, subscribers, events, { occurredAt, claimer: null });
  return published.events;
}

type MadeEvent = Omit<PublishedEvent, 'sequence'>;

function makeEvent(event: NewEvent, occurredAt: Date): MadeEvent {
  const uuid = uuidV7(occurredAt.getTime());
  const body = event.dataJson === null ? null : bodyOf(event, event.dataJson, occurredAt);
  return { ...event, uuid, day: dayOfUuidV7(uuid), lane: laneOf(event.laneKey), body };
}

type Keys = {
  /** In the one order in which all publishers lock them, with how many of the events have each. */
  keys: { wabaId: string; lane: string; events: number }[];
  /** Of each event the place of its key, from 0, and how many of the events come behind it in that key. */
  places: { key: number; behind: number }[];
  /** The sequence of an event, by the last number of each key. */
  numberOf(index: number, lastNumbers: readonly string[]): string;
};

function keysOf(made: readonly Pick<MadeEvent, 'wabaId' | 'lane'>[]): Keys {
  const nameOf = ({ wabaId, lane }: Pick<MadeEvent, 'wabaId' | 'lane'>) => `${wabaId} ${lane}`;
  const groups = Map.groupBy(made, nameOf);
  const names = [...groups.keys()].sort();
  const placeOfName = new Map(names.map((name, place) => [name, place]));
  const left = new Map([...groups].map(([name, events]) => [name, events.length]));
  const places = made.map((event) => {
    const name = nameOf(event);
    const behind = (left.get(name) ?? 1) - 1;
    left.set(name, behind);
    return { key: placeOfName.get(name) ?? 0, behind };
  });
  return {
    keys: names.flatMap((name) => {
      const events = groups.get(name) ?? [];
      return events.slice(0, 1).map(({ wabaId, lane }) => ({ wabaId, lane, events: events.length }));
    }),
    places,
    numberOf: (index, lastNumbers) => {
      const { key, behind } = places[index] ?? { key: 0, behind: 0 };
      return String(BigInt(lastNumbers[key] ?? 1) - BigInt(behind));
    },
  };
}

function keyColumns({ keys, places }: Keys) {
  return {
    keyWabas: keys.map(({ wabaId }) => wabaId),
    keys: keys.map(({ lane }) => lane),
    keyEvents: keys.map(({ events }) => events),
    eventKeys: places.map(({ key }) => key + 1),
    eventsBehind: places.map(({ behind }) => behind),
  };
}

function eventColumns(made: readonly MadeEvent[]) {
  return {
    ...columnsOf(made, 'day', 'uuid', 'wabaId', 'tenantId', 'phoneNumberId', 'type', 'eventId'),
    ...columnsOf(made, 'conversationId', 'messageId'),
    upstreamIds: made.map((event) => event.upstreamId ?? null),
    bodies: byteaArray(made.map((event) => event.body)),
  };
}

export type EnvelopeParts = Pick<NewEvent, 'type' | 'tenantId' | 'wabaId' | 'phoneNumberId' | 'eventId'>;

/** The bytes of one event: made once, then only stored and sent. */
export function bodyOf(event: EnvelopeParts, dataJson: string, occurredAt: Date): Buffer {
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
  event: MadeEvent;
  /** Its place among the events, from 1. */
  eventNumber: number;
  endpointVersion: number;
};

function fanOut(events: readonly MadeEvent[], subscribers: readonly Subscriber[]): PlannedDelivery[] {
  return events.flatMap((event, index) => {
    const isTaken = contentJudge(event.dataJson);
    const isBuffered = bufferJudge(event);
    return subscribers
      .filter((endpoint) => wants(endpoint, event) && (endpoint.filter === null || isTaken(endpoint.filter)))
      .map((endpoint) => {
        const open = endpoint.mode === 'open';
        const delivery = newDelivery(event, endpoint.id, laneAt(endpoint, event), open);
        const released = delivery.released && !isBuffered(endpoint);
        return { ...delivery, released, event, eventNumber: index + 1, endpointVersion: endpoint.version };
      });
  });
}

/** Whether an event waits at an endpoint for others of its conversation (dispatch/release-buffers.ts). It is read once, if at all. */
function bufferJudge({
  type,
  conversationId,
  dataJson,
}: Pick<NewEvent, 'type' | 'conversationId' | 'dataJson'>) {
  if (type !== 'message' || conversationId === null || dataJson === null) return () => false;
  let messageType: string | undefined;
  return ({ bufferTypes }: Subscriber): boolean => {
    if (bufferTypes === null) return false;
    messageType ??= (JSON.parse(dataJson) as { message?: { type?: string } }).message?.type ?? '';
    return bufferTypes.includes(messageType);
  };
}

function placeOf({ endpointId, lane }: PlannedDelivery): string {
  return `${endpointId} ${lane}`;
}

function claimOf(
  delivery: PlannedDelivery,
  published: readonly PublishedEvent[],
  isFollowed: boolean,
): ClaimedDelivery {
  const { event, eventNumber, endpointVersion, deliveryId, deliveryDay, endpointId, eventDay, eventUuid } =
    delivery;
  const sequence = published[eventNumber - 1]?.sequence ?? '1';
  return {
    deliveryId,
    deliveryDay,
    endpointId,
    endpointVersion,
    eventDay,
    eventUuid,
    attempts: 0,
    probes: 0,
    replay: false,
    hasRun: false,
    isFollowed,
    eventType: event.type,
    eventId: event.eventId,
    sequence,
    body: event.body,
  };
}

function laneAt({ orderScope }: Subscriber, event: MadeEvent): string {
  if (orderScope === 'endpoint') return 'endpoint';
  if (orderScope === 'conversation' && event.conversationId !== null) {
    return `conversation/${event.conversationId}`;
  }
  return event.lane;
}

/** One delivery of an event, to be stored and queued. `open`: its endpoint takes deliveries at present. */
export function newDelivery(event: MadeEvent, endpointId: string, lane: string, open: boolean) {
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

/** Whether an endpoint takes events of this type and number; its content filter is judged apart. */
export function wants(
  { wabaId, eventTypes, phoneNumberIds, format }: Subscriber,
  event: Pick<NewEvent, 'wabaId' | 'type' | 'phoneNumberId'>,
): boolean {
  return (
    wabaId === event.wabaId &&
    formatTakes(format, event.type) &&
    includesType(eventTypes, event.type) &&
    (phoneNumberIds === null || event.phoneNumberId === null || phoneNumberIds.includes(event.phoneNumberId))
  );
}
