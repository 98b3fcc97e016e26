import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { publicDeliveryId } from '../../platform/public-ids.ts';

/** Where a delivery is in the queue and the log. */
export type DeliveryPlace = {
  deliveryId: string;
  deliveryDay: string;
  eventDay: string;
  eventUuid: string;
  endpointId: string;
};

/** What operators read of a delivery in the Temporal UI. */
export type DeliveryLabel = {
  deliveryId: string;
  deliveryDay: string;
  endpointId: string;
  endpointUrl: string;
  wabaId: string;
  tenantId: string;
  eventType: string;
  eventId: string;
};

/** Temporal allows ids of 1,000 characters; upstream chooses how long an eventId is. */
const MAX_EVENT_ID_IN_WORKFLOW_ID = 200;

/** The id under which operators find a delivery: endpoint, the eventId as the tenant knows it, delivery. */
export function deliveryWorkflowId(
  label: Pick<DeliveryLabel, 'deliveryId' | 'endpointId' | 'eventId'>,
): string {
  const eventId = label.eventId.slice(0, MAX_EVENT_ID_IN_WORKFLOW_ID);
  return `delivery/${label.endpointId}/${eventId}/${publicDeliveryId(label.deliveryId)}`;
}

/** Looks up the labels of deliveries; those whose event or endpoint is gone are absent. */
export async function labelDeliveries(
  database: Database,
  deliveries: readonly DeliveryPlace[],
): Promise<DeliveryLabel[]> {
  return await query<DeliveryLabel>(
    database,
    `select d.delivery_id as "deliveryId", d.delivery_day as "deliveryDay", e.id as "endpointId",
            e.url as "endpointUrl", ev.waba_id as "wabaId", ev.tenant_id as "tenantId",
            ev.event_type as "eventType", ev.event_id as "eventId"
       from unnest(?::uuid[], ?::date[], ?::date[], ?::uuid[], ?::bigint[])
              as d (delivery_id, delivery_day, event_day, event_uuid, endpoint_id)
       join events ev on ev.day = d.event_day and ev.id = d.event_uuid
       join webhook_endpoints e on e.id = d.endpoint_id`,
    [
      deliveries.map((d) => d.deliveryId),
      deliveries.map((d) => d.deliveryDay),
      deliveries.map((d) => d.eventDay),
      deliveries.map((d) => d.eventUuid),
      deliveries.map((d) => d.endpointId),
    ],
  );
}
