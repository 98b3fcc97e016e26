import type { EventType } from '../platform/event-type.ts';
import type { Database } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';
import type { EndpointMode } from './endpoint-settings.ts';

/** What shares a lane at an endpoint: events of one eventId, of one conversation, or all. */
export type OrderScope = 'event' | 'conversation' | 'endpoint';

export type Subscriber = {
  id: string;
  wabaId: string;
  /** Null: every type, also those to come; likewise numbers. */
  eventTypes: EventType[] | null;
  phoneNumberIds: string[] | null;
  orderScope: OrderScope;
  mode: EndpointMode;
  version: number;
};

/** Who receives the events of these WABAs, switched-off endpoints included: their events wait. */
export async function endpointsOfWabas(
  database: Database,
  wabaIds: readonly string[],
): Promise<Subscriber[]> {
  return await query<Subscriber>(
    database,
    `select id, waba_id as "wabaId", event_types as "eventTypes", phone_number_ids as "phoneNumberIds",
            order_scope as "orderScope", mode, version
       from webhook_endpoints where waba_id = any (?::text[]) order by id`,
    [wabaIds],
  );
}

/** How many endpoints each of these WABAs has; none is not told. */
export async function countEndpoints(
  database: Database,
  wabaIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await query<{ wabaId: string; count: number }>(
    database,
    `select waba_id as "wabaId", count(*)::integer as count from webhook_endpoints
      where waba_id = any (?::text[]) group by waba_id`,
    [wabaIds],
  );
  return new Map(rows.map(({ wabaId, count }) => [wabaId, count]));
}
