import type { Database, Transaction } from '../platform/postgres/database.ts';
import { execute, query } from '../platform/postgres/sql.ts';

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

/** The event of a delivery, as it is sent. */
export type DeliveredEvent = {
  wabaId: string;
  eventType: string;
  eventId: string;
  sequence: string;
  body: Buffer;
};

/** Reads one released event; null when it is gone. */
export async function findDeliveredEvent(
  database: Database,
  event: { eventDay: string; eventUuid: string },
): Promise<DeliveredEvent | null> {
  const [row] = await query<DeliveredEvent>(
    database,
    `select waba_id as "wabaId", event_type as "eventType", event_id as "eventId", sequence, body
       from events where day = :eventDay and id = :eventUuid and body is not null`,
    event,
  );
  return row ?? null;
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
