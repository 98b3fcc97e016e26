import type { Database, Transaction } from './database.ts';
import { execute, query } from './sql.ts';

export type NewDelivery = {
  deliveryDay: string;
  deliveryId: string;
  wabaId: string;
  endpointId: string;
  eventDay: string;
  eventUuid: string;
};

/** Adds deliveries to the log, all pending. */
export async function insertDeliveries(trx: Transaction, deliveries: readonly NewDelivery[]): Promise<void> {
  await execute(
    trx,
    `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid)
     select * from unnest(?::date[], ?::uuid[], ?::text[], ?::bigint[], ?::date[], ?::uuid[])`,
    [
      deliveries.map((d) => d.deliveryDay),
      deliveries.map((d) => d.deliveryId),
      deliveries.map((d) => d.wabaId),
      deliveries.map((d) => d.endpointId),
      deliveries.map((d) => d.eventDay),
      deliveries.map((d) => d.eventUuid),
    ],
  );
}

/** What an attempt needs to know of a delivery: the event's bytes and the endpoint as it is now. */
export type DeliveryMaterial = {
  wabaId: string;
  eventType: string;
  eventId: string;
  sequence: string;
  body: Buffer;
  endpointUrl: string;
  endpointMode: string;
  endpointVersion: number;
  secretSealed: string;
  previousSecretSealed: string | null;
};

/** Reads the material of one released delivery; null when event or endpoint is gone. */
export async function deliveryMaterial(
  database: Database,
  ids: { eventDay: string; eventUuid: string; endpointId: string },
): Promise<DeliveryMaterial | null> {
  const [row] = await query<DeliveryMaterial>(
    database,
    `select ev.waba_id as "wabaId", ev.event_type as "eventType", ev.event_id as "eventId", ev.sequence, ev.body,
            e.url as "endpointUrl", e.mode as "endpointMode", e.version as "endpointVersion",
            e.secret_sealed as "secretSealed",
            case when e.previous_secret_expires_at > now() then e.previous_secret_sealed end as "previousSecretSealed"
       from events ev join webhook_endpoints e on e.id = :endpointId and e.waba_id = ev.waba_id
      where ev.day = :eventDay and ev.id = :eventUuid and ev.body is not null`,
    ids,
  );
  return row ?? null;
}

export type DeliveryProgress = {
  deliveryDay: string;
  deliveryId: string;
  state: 'pending' | 'delivered' | 'failed' | 'dropped';
  attempts: number;
  statusCode: number | null;
  error: string | null;
  nextDelayMs: number | null;
};

/** Writes the outcome of an attempt to the log. */
export async function recordProgress(trx: Transaction, progress: DeliveryProgress): Promise<void> {
  await execute(
    trx,
    `update deliveries
        set state = :state, attempts = :attempts, last_status_code = :statusCode, last_error = :error,
            next_attempt_at = clock_timestamp() + cast(:nextDelayMs as float8) * interval '1 millisecond',
            finished_at = case when :state = 'pending' then null else clock_timestamp() end
      where day = :deliveryDay and id = :deliveryId`,
    progress,
  );
}

/** Notes which workflow carries a delivery, for the link to the Temporal UI. */
export async function recordWorkflow(
  database: Database,
  deliveries: readonly { deliveryDay: string; deliveryId: string; workflowId: string }[],
): Promise<void> {
  await execute(
    database,
    `update deliveries d set workflow_id = w.workflow_id
       from unnest(?::date[], ?::uuid[], ?::text[]) as w (day, id, workflow_id)
      where d.day = w.day and d.id = w.id and d.workflow_id is distinct from w.workflow_id`,
    [
      deliveries.map((d) => d.deliveryDay),
      deliveries.map((d) => d.deliveryId),
      deliveries.map((d) => d.workflowId),
    ],
  );
}
