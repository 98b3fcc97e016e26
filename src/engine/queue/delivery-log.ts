import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';

export type NewDelivery = {
  deliveryDay: string;
  deliveryId: string;
  wabaId: string;
  endpointId: string;
  eventDay: string;
  eventUuid: string;
  replayId?: string;
  /** The delivery that it repeats; left out: it is no replay, or the endpoint never had the event. */
  replayOf?: string | null;
};

/** Adds deliveries to the log, all pending. */
export async function insertDeliveries(trx: Transaction, deliveries: readonly NewDelivery[]): Promise<void> {
  await execute(
    trx,
    `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid, replay_id, replay_of)
     select * from unnest(:deliveryDay::date[], :deliveryId::uuid[], :wabaId::text[], :endpointId::bigint[], :eventDay::date[], :eventUuid::uuid[], :replayIds::bigint[], :replayOfs::uuid[])`,
    {
      ...columnsOf(deliveries, 'deliveryDay', 'deliveryId', 'wabaId', 'endpointId', 'eventDay', 'eventUuid'),
      replayIds: deliveries.map((d) => d.replayId ?? null),
      replayOfs: deliveries.map((d) => d.replayOf ?? null),
    },
  );
}

export type DeliveryEnd = {
  state: 'delivered' | 'failed' | 'dropped';
  attempts: number;
  statusCode: number | null;
  error: string | null;
};

/** How these deliveries ended, by their ids; those that are pending, or that the log no longer has, are absent. */
export async function findDeliveryEnds(
  database: Database,
  deliveries: readonly { deliveryId: string; deliveryDay: string }[],
): Promise<Map<string, DeliveryEnd>> {
  const rows = await query<DeliveryEnd & { id: string }>(
    database,
    `select d.id, d.state, d.attempts, d.last_status_code as "statusCode", d.last_error as error
       from unnest(:deliveryDay::date[], :deliveryId::uuid[]) as w (day, id)
       join deliveries d on d.day = w.day and d.id = w.id and d.state <> 'pending'`,
    columnsOf(deliveries, 'deliveryDay', 'deliveryId'),
  );
  return new Map(rows.map(({ id, ...end }) => [id, end]));
}

/** Notes which workflow shows a delivery, for the link to the Temporal UI. */
export async function recordWorkflow(
  database: Database,
  deliveries: readonly { deliveryDay: string; deliveryId: string; workflowId: string }[],
): Promise<void> {
  await execute(
    database,
    `update deliveries d set workflow_id = w.workflow_id
       from unnest(:deliveryDay::date[], :deliveryId::uuid[], :workflowId::text[]) as w (day, id, workflow_id)
      where d.day = w.day and d.id = w.id and d.workflow_id is distinct from w.workflow_id`,
    columnsOf(deliveries, 'deliveryDay', 'deliveryId', 'workflowId'),
  );
}
