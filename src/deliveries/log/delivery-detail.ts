import type { EventType } from '../../platform/event-type.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7 } from '../../platform/public-ids.ts';
import type { QueueState } from '../queue/states.ts';
import type { DeliveryState } from './delivery-filter.ts';
import type { EventAttempt } from './event-deliveries.ts';

/** Everything about one delivery but its attempts. */
export type DeliveryDetail = {
  id: string;
  wabaId: string;
  businessName: string;
  endpointId: string;
  endpointUrl: string | null;
  endpointMode: 'open' | 'probing' | 'paused' | 'disabled' | null;
  eventUuid: string;
  eventDay: string;
  eventType: EventType | null;
  eventId: string | null;
  phoneNumberId: string | null;
  sequence: string | null;
  messageId: string | null;
  conversationId: string | null;
  occurredAt: Date | null;
  body: Buffer | null;
  state: DeliveryState;
  attempts: number;
  lastStatusCode: number | null;
  lastError: string | null;
  createdAt: Date;
  finishedAt: Date | null;
  workflowId: string | null;
  replayId: string | null;
  replayOf: string | null;
  /** Where it stands in the queue; null once it is settled. */
  queueState: QueueState | null;
  nextAttemptAt: Date | null;
  /** When later events of its key began to go out without it, because it failed for too long; null: they did not. */
  steppedAsideAt: Date | null;
};

/** One delivery of a WABA; null when it has none with this id. */
export async function findDeliveryDetail(
  database: Database,
  wabaId: string,
  deliveryId: string,
): Promise<DeliveryDetail | null> {
  const [row] = await query<DeliveryDetail>(
    database,
    `select d.id, d.waba_id as "wabaId", t.business_name as "businessName", d.endpoint_id as "endpointId",
            e.url as "endpointUrl", e.mode as "endpointMode", d.event_uuid as "eventUuid",
            d.event_day as "eventDay", ev.event_type as "eventType", ev.event_id as "eventId",
            ev.phone_number_id as "phoneNumberId", ev.sequence, ev.message_id as "messageId",
            ev.conversation_id as "conversationId", ev.occurred_at as "occurredAt", ev.body, d.state, d.attempts,
            d.last_status_code as "lastStatusCode", d.last_error as "lastError", d.created_at as "createdAt",
            d.finished_at as "finishedAt", d.workflow_id as "workflowId", d.replay_id as "replayId",
            d.replay_of as "replayOf", q.state as "queueState", q.next_attempt_at as "nextAttemptAt",
            d.stepped_aside_at as "steppedAsideAt"
       from deliveries d
       join wabas w on w.waba_id = d.waba_id join tenants t on t.id = w.tenant_id
       left join webhook_endpoints e on e.id = d.endpoint_id and e.waba_id = d.waba_id
       left join delivery_queue q on q.delivery_id = d.id
       left join lateral (select * from events where day = d.event_day and id = d.event_uuid offset 0) as ev on true
      where d.day = cast(:day as date) and d.id = cast(:deliveryId as uuid) and d.waba_id = :wabaId`,
    { wabaId, deliveryId, day: dayOfUuidV7(deliveryId) },
  );
  return row ?? null;
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
    `select attempt, started_at as "startedAt", duration_ms as "durationMs", timings, status_code as "statusCode",
            error_class as "errorClass", error_message as "errorMessage", url, remote_address as "remoteAddress",
            request_headers as "requestHeaders", response_headers as "responseHeaders",
            response_body as "responseBody", worker
       from attempts where delivery_id = cast(:deliveryId as uuid) and waba_id = :wabaId
      order by attempt desc limit :limit`,
    { wabaId, deliveryId, limit },
  );
}
