import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

export type FoundEvent = {
  eventUuid: string;
  eventType: string;
  userId: string;
  wabaId: string;
  phoneNumberId: string;
  sequence: string;
  createdAt: Date;
  /** Null while the event waits to be released (an order for its catalog). */
  occurredAt: Date | null;
};

/**
 * The newest events with an eventId, of all tenants: for operators. An eventId is not unique. Names every WABA, so
 * that the index on (waba_id, event_id) serves instead of a scan of every day.
 */
export async function findEventsForOperator(
  database: Database,
  eventId: string,
  limit: number,
): Promise<FoundEvent[]> {
  return await query<FoundEvent>(
    database,
    `select id as "eventUuid", event_type as "eventType", tenant_id as "userId", waba_id as "wabaId",
            phone_number_id as "phoneNumberId", sequence, created_at as "createdAt", occurred_at as "occurredAt"
       from events
      where waba_id = any (array(select waba_id from wabas)) and event_id = ?
      order by created_at desc, sequence desc limit ?`,
    [eventId, limit],
  );
}

export type FoundDelivery = {
  deliveryId: string;
  eventUuid: string;
  endpointId: string;
  /** Null when the endpoint is gone. */
  url: string | null;
  endpointMode: string | null;
  state: string;
  /** Where it stands in the queue; null once it is settled. */
  queueState: string | null;
  attempts: number;
  lastStatusCode: number | null;
  lastError: string | null;
  nextAttemptAt: Date | null;
  /** When later events of its key began to go out without it, because it failed for too long; null: they did not. */
  steppedAsideAt: Date | null;
  workflowId: string | null;
};

/** The deliveries of these events, the oldest first. */
export async function findDeliveriesOfEvents(
  database: Database,
  eventUuids: readonly string[],
): Promise<FoundDelivery[]> {
  return await query<FoundDelivery>(
    database,
    `select d.id as "deliveryId", d.event_uuid as "eventUuid", d.endpoint_id as "endpointId", e.url,
            e.mode as "endpointMode", d.state, q.state as "queueState", d.attempts,
            d.last_status_code as "lastStatusCode", d.last_error as "lastError",
            case when q.delivery_id is not null then q.next_attempt_at end as "nextAttemptAt",
            d.stepped_aside_at as "steppedAsideAt", d.workflow_id as "workflowId"
       from deliveries d
       left join webhook_endpoints e on e.id = d.endpoint_id
       left join delivery_queue q on q.delivery_id = d.id
      where d.event_uuid = any (?::uuid[]) order by d.created_at, d.id`,
    [eventUuids],
  );
}

export type FoundAttempt = {
  deliveryId: string;
  attempt: number;
  startedAt: Date;
  durationMs: number;
  statusCode: number | null;
  errorClass: string | null;
  errorMessage: string | null;
};

/** The attempts of these deliveries, in their order. */
export async function findAttemptsOfDeliveries(
  database: Database,
  deliveryIds: readonly string[],
): Promise<FoundAttempt[]> {
  return await query<FoundAttempt>(
    database,
    `select delivery_id as "deliveryId", attempt, started_at as "startedAt", duration_ms as "durationMs",
            status_code as "statusCode", error_class as "errorClass", error_message as "errorMessage"
       from attempts where delivery_id = any (?::uuid[]) order by attempt, started_at`,
    [deliveryIds],
  );
}
