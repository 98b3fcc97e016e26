import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** How many endpoints an event stands so at; of several deliveries to one endpoint the newest counts. */
export type DeliverySummary = { pending: number; delivered: number; failed: number; dropped: number };

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

export type EventDelivery = {
  id: string;
  endpointId: string;
  state: keyof DeliverySummary;
  attempts: number;
  lastStatusCode: number | null;
  lastError: string | null;
  nextAttemptAt: Date | null;
  /** When later events of its key began to go out without it, because it failed for too long; null: they did not. */
  steppedAsideAt: Date | null;
  createdAt: Date;
  finishedAt: Date | null;
  workflowId: string | null;
  replayId: string | null;
  /** The delivery that this one repeats. */
  replayOf: string | null;
};

/** The newest deliveries of an event of a WABA, the newest first. */
export async function listEventDeliveries(
  database: Database,
  wabaId: string,
  event: EventKey,
  limit: number,
): Promise<EventDelivery[]> {
  return await query<EventDelivery>(
    database,
    `select id, endpoint_id as "endpointId", state, attempts, last_status_code as "lastStatusCode",
            last_error as "lastError", case when state = 'pending' then next_attempt_at end as "nextAttemptAt",
            stepped_aside_at as "steppedAsideAt",
            created_at as "createdAt", finished_at as "finishedAt", workflow_id as "workflowId",
            replay_id as "replayId", replay_of as "replayOf"
       from deliveries
      where waba_id = :wabaId and event_uuid = :id and day >= cast(:fromDay as date)
      order by day desc, id desc limit :limit`,
    { wabaId, id: event.id, fromDay: firstDay([event]), limit },
  );
}

/** The newest delivery of an event to each endpoint that still exists, and whether it is still open. */
export async function newestDeliveries(
  database: Database,
  wabaId: string,
  event: EventKey,
): Promise<{ id: string; endpointId: string; isOpen: boolean }[]> {
  return await query(
    database,
    `select distinct on (d.endpoint_id) d.id, d.endpoint_id as "endpointId", d.state = 'pending' as "isOpen"
       from deliveries d join webhook_endpoints e on e.id = d.endpoint_id and e.waba_id = d.waba_id
      where d.waba_id = :wabaId and d.event_uuid = :id and d.day >= cast(:fromDay as date)
      order by d.endpoint_id, d.day desc, d.id desc`,
    { wabaId, id: event.id, fromDay: firstDay([event]) },
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
  requestHeaders: Record<string, string>;
  responseHeaders: Record<string, string> | null;
  responseBody: Buffer | null;
};

/** The newest attempts of each of these deliveries of a WABA, the oldest first. */
export async function listDeliveryAttempts(
  database: Database,
  wabaId: string,
  deliveryIds: readonly string[],
  limitEach: number,
): Promise<EventAttempt[]> {
  return await query<EventAttempt>(
    database,
    `select a.delivery_id as "deliveryId", a.attempt, a.started_at as "startedAt", a.duration_ms as "durationMs",
            a.timings, a.status_code as "statusCode", a.error_class as "errorClass",
            a.error_message as "errorMessage", a.url, a.request_headers as "requestHeaders",
            a.response_headers as "responseHeaders", a.response_body as "responseBody"
       from unnest(cast(:deliveryIds as uuid[])) as d (id)
      cross join lateral (select * from attempts where delivery_id = d.id and waba_id = :wabaId
                           order by attempt desc limit :limitEach) as a
      order by a.delivery_id, a.attempt`,
    { wabaId, deliveryIds, limitEach },
  );
}
