import type { EndpointMode } from '../../engine/endpoint/endpoint-settings.ts';
import type { QueueState } from '../../engine/queue/states.ts';
import type { SentEventType } from '../../platform/event-type.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query, queryOne } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7 } from '../../platform/public-ids.ts';

export const DELIVERY_STATES = ['pending', 'delivered', 'failed', 'dropped'] as const;

export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** How many endpoints an event stands so at; of several deliveries to one endpoint the newest counts. */
type DeliverySummary = Record<DeliveryState, number>;

type EventKey = { id: string; day: string };

/** The clock of a machine that queues deliveries may be behind that of the one that made the event. */
const SPARE_DAYS = 1;

/** What came of these events of a WABA, by event id; an event without deliveries counts 0 everywhere. */
export async function summarizeDeliveries(
  database: Database,
  wabaId: string,
  events: readonly EventKey[],
): Promise<Map<string, DeliverySummary>> {
  const summaries = new Map(
    events.map(({ id }) => [id, { pending: 0, delivered: 0, failed: 0, dropped: 0 }]),
  );
  if (events.length === 0) return summaries;
  const rows = await query<{ eventUuid: string; state: keyof DeliverySummary }>(
    database,
    `select distinct on (event_uuid, endpoint_id) event_uuid as "eventUuid", state
       from deliveries
      where waba_id = :wabaId and event_uuid = any (cast(:ids as uuid[])) and day >= cast(:fromDay as date)
      order by event_uuid, endpoint_id, day desc, id desc`,
    { wabaId, ids: events.map(({ id }) => id), fromDay: firstDay(events) },
  );
  for (const { eventUuid, state } of rows) {
    const summary = summaries.get(eventUuid);
    if (summary !== undefined) summary[state] += 1;
  }
  return summaries;
}

function firstDay(events: readonly EventKey[]): string {
  const days = events.map(({ day }) => Date.parse(day));
  return new Date(Math.min(...days) - SPARE_DAYS * 86_400_000).toISOString().slice(0, 10);
}

export type LoggedDelivery = {
  id: string;
  endpointId: string;
  state: DeliveryState;
  attempts: number;
  lastStatusCode: number | null;
  lastError: string | null;
  nextAttemptAt: Date | null;
  /** When later events of its key began to go out without it, because it failed for too long; null: they did not. */
  steppedAsideAt: Date | null;
  /** The delivery that sends it with others, itself if it is the first of them; null: it goes alone. */
  sentWith: string | null;
  createdAt: Date;
  finishedAt: Date | null;
  workflowId: string | null;
  replayId: string | null;
  replayOf: string | null;
};

/** `url` and `endpointMode` are null when the endpoint is gone, `queueState` once the delivery is settled. */
export type EventDelivery = LoggedDelivery & {
  eventUuid: string;
  url: string | null;
  endpointMode: EndpointMode | null;
  queueState: QueueState | null;
};

/** SQL of a LoggedDelivery of the delivery `d`. */
const LOGGED = `d.id, d.endpoint_id as "endpointId", d.state, d.attempts, d.last_status_code as "lastStatusCode",
            d.last_error as "lastError", case when d.state = 'pending' then d.next_attempt_at end as "nextAttemptAt",
            d.stepped_aside_at as "steppedAsideAt", d.batch_id as "sentWith", d.created_at as "createdAt", d.finished_at as "finishedAt",
            d.workflow_id as "workflowId", d.replay_id as "replayId", d.replay_of as "replayOf"`;

/** The newest deliveries of an event of a WABA, the newest first. */
export async function listEventDeliveries(
  database: Database,
  wabaId: string,
  event: EventKey,
  limit: number,
): Promise<LoggedDelivery[]> {
  return await query<LoggedDelivery>(
    database,
    `select ${LOGGED} from deliveries d
      where waba_id = :wabaId and event_uuid = :id and day >= cast(:fromDay as date)
      order by day desc, id desc limit :limit`,
    { wabaId, id: event.id, fromDay: firstDay([event]), limit },
  );
}

/** The deliveries of these events, the oldest first, with their endpoints as they are. */
export async function findDeliveriesOfEvents(
  database: Database,
  eventUuids: readonly string[],
): Promise<EventDelivery[]> {
  return await query<EventDelivery>(
    database,
    `select ${LOGGED}, d.event_uuid as "eventUuid", e.url, h.mode as "endpointMode", q.state as "queueState"
       from deliveries d
       left join webhook_endpoints e on e.id = d.endpoint_id
       left join endpoint_health h on h.endpoint_id = e.id
       left join delivery_queue q on q.delivery_id = coalesce(d.batch_id, d.id)
      where d.event_uuid = any (cast(:eventUuids as uuid[])) order by d.created_at, d.id`,
    { eventUuids },
  );
}

/** An attempt as tenants may see it: the log's remote address and worker are for operators. */
export type EventAttempt = {
  deliveryId: string;
  attempt: number;
  startedAt: Date;
  durationMs: number;
  timings: Record<string, number | boolean | null>;
  statusCode: number | null;
  errorClass: string | null;
  errorMessage: string | null;
  url: string;
  userAgent: string;
  /** Names of the headers that the tenant added, with commas between them. */
  customHeaders: string | null;
  responseHeaders: Record<string, string> | null;
  responseBody: Buffer | null;
};

const ATTEMPT_COLUMNS = `a.attempt, a.started_at as "startedAt", a.duration_ms as "durationMs",
            jsonb_build_object('dnsMs', a.dns_ms, 'connectMs', a.connect_ms, 'tlsMs', a.tls_ms,
                               'firstByteMs', a.first_byte_ms, 'totalMs', a.duration_ms, 'reused', a.reused) as timings,
            a.status_code as "statusCode", a.error_class as "errorClass", a.error_message as "errorMessage", a.url,
            a.user_agent as "userAgent", a.custom_headers as "customHeaders", a.response_headers as "responseHeaders",
            a.response_body as "responseBody"`;

/** The newest attempts (null: all) of each of these deliveries of a WABA (null: of any), the oldest first. */
export async function listDeliveryAttempts(
  database: Database,
  wabaId: string | null,
  deliveryIds: readonly string[],
  limitEach: number | null,
): Promise<EventAttempt[]> {
  return await query<EventAttempt>(
    database,
    `select a.delivery_id as "deliveryId", ${ATTEMPT_COLUMNS}
       from unnest(cast(:deliveryIds as uuid[])) as d (id)
      cross join lateral (select * from attempts
                           where delivery_id = d.id and waba_id = coalesce(cast(:wabaId as text), waba_id)
                           order by attempt desc limit cast(:limitEach as bigint)) as a
      order by a.delivery_id, a.attempt`,
    { wabaId, deliveryIds, limitEach },
  );
}

export type DeliveryDetail = LoggedDelivery & {
  wabaId: string;
  businessName: string;
  endpointUrl: string | null;
  endpointDescription: string | null;
  endpointMode: EndpointMode | null;
  eventUuid: string;
  eventDay: string;
  eventType: SentEventType | null;
  eventId: string | null;
  phoneNumberId: string | null;
  sequence: string | null;
  messageId: string | null;
  conversationId: string | null;
  occurredAt: Date | null;
  body: Buffer | null;
  queueState: QueueState | null;
  /** The head of its lane, while it is queued behind it. */
  blockedBy: string | null;
};

export async function findDeliveryDetail(
  database: Database,
  wabaId: string,
  deliveryId: string,
): Promise<DeliveryDetail | null> {
  return await queryOne<DeliveryDetail>(
    database,
    `select ${LOGGED}, d.waba_id as "wabaId", t.business_name as "businessName", e.url as "endpointUrl",
            e.description as "endpointDescription", s.mode as "endpointMode", d.event_uuid as "eventUuid", d.event_day as "eventDay",
            ev.event_type as "eventType", ev.event_id as "eventId", ev.phone_number_id as "phoneNumberId", ev.sequence,
            ev.message_id as "messageId", ev.conversation_id as "conversationId", ev.occurred_at as "occurredAt",
            ev.body, q.state as "queueState",
            (select h.delivery_id from delivery_queue h
              where q.state = 'queued' and h.endpoint_id = q.endpoint_id and h.lane = q.lane
                and h.state <> 'queued') as "blockedBy"
       from deliveries d
       join wabas w on w.waba_id = d.waba_id join tenants t on t.id = w.tenant_id
       left join webhook_endpoints e on e.id = d.endpoint_id and e.waba_id = d.waba_id
       left join endpoint_health s on s.endpoint_id = e.id
       left join delivery_queue q on q.delivery_id = coalesce(d.batch_id, d.id)
       left join lateral (select * from events where day = d.event_day and id = d.event_uuid offset 0) as ev on true
      where d.day = cast(:day as date) and d.id = cast(:deliveryId as uuid) and d.waba_id = :wabaId`,
    { wabaId, deliveryId, day: dayOfUuidV7(deliveryId) },
  );
}

/** The WABA and the event of a delivery; null when there is none with this id. */
export async function findOwners(
  database: Database,
  deliveryId: string,
): Promise<{ wabaId: string; eventUuid: string } | null> {
  return await queryOne(
    database,
    `select waba_id as "wabaId", event_uuid as "eventUuid" from deliveries
      where day = cast(:day as date) and id = cast(:deliveryId as uuid)`,
    { deliveryId, day: dayOfUuidV7(deliveryId) },
  );
}

/** An attempt with what only operators see: the address that was connected to, and the process that made it. */
export type LoggedAttempt = Omit<EventAttempt, 'deliveryId'> & {
  remoteAddress: string | null;
  worker: string;
};

/** The newest attempts of a delivery of a WABA, the newest first. */
export async function listAttempts(
  database: Database,
  wabaId: string,
  deliveryId: string,
  limit: number,
): Promise<LoggedAttempt[]> {
  return await query<LoggedAttempt>(
    database,
    `select ${ATTEMPT_COLUMNS}, a.remote_address as "remoteAddress", a.worker
       from attempts a where delivery_id = cast(:deliveryId as uuid) and waba_id = :wabaId
      order by attempt desc limit :limit`,
    { wabaId, deliveryId, limit },
  );
}

export type ListedDelivery = LoggedDelivery & {
  wabaId: string;
  businessName: string;
  endpointUrl: string | null;
  endpointDescription: string | null;
  eventType: SentEventType | null;
  eventId: string | null;
  lastDurationMs: number | null;
};

/**
 * What a list shows of these deliveries, in their order. Everything is looked up by keys, in their own subqueries:
 * joined freely, the planner may read a whole day.
 */
export async function describeDeliveries(
  database: Database,
  keys: readonly { day: string; id: string }[],
): Promise<ListedDelivery[]> {
  if (keys.length === 0) return [];
  return await query<ListedDelivery>(
    database,
    `select ${LOGGED}, d.waba_id as "wabaId", t.business_name as "businessName", e.url as "endpointUrl",
            e.description as "endpointDescription", ev.event_type as "eventType", ev.event_id as "eventId", a.duration_ms as "lastDurationMs"
       from unnest(cast(:days as date[]), cast(:ids as uuid[])) with ordinality as k (day, id, n)
      cross join lateral (select * from deliveries where day = k.day and id = k.id offset 0) as d
       join wabas w on w.waba_id = d.waba_id join tenants t on t.id = w.tenant_id
       left join webhook_endpoints e on e.id = d.endpoint_id and e.waba_id = d.waba_id
       left join lateral (select event_type, event_id from events where day = d.event_day and id = d.event_uuid
                          offset 0) as ev on true
       left join lateral (select duration_ms from attempts where delivery_id = d.id and d.attempts > 0
                           order by attempt desc limit 1) as a on true
      order by k.n`,
    { days: keys.map(({ day }) => day), ids: keys.map(({ id }) => id) },
  );
}

/** These deliveries of a WABA, by id; unknown ones are absent. */
export async function findDeliveries(
  database: Database,
  wabaId: string,
  deliveryIds: readonly string[],
): Promise<Map<string, LoggedDelivery>> {
  const rows = await query<LoggedDelivery>(
    database,
    `select ${LOGGED} from deliveries d
      where d.day = any (cast(:days as date[])) and d.id = any (cast(:ids as uuid[])) and d.waba_id = :wabaId`,
    { days: [...new Set(deliveryIds.map(dayOfUuidV7))], ids: deliveryIds, wabaId },
  );
  return new Map(rows.map((row) => [row.id, row]));
}
