import type { EventType } from '../../platform/event-type.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import type { DeliveryState } from './delivery-filter.ts';

/** A delivery as a list shows it. */
export type ListedDelivery = {
  id: string;
  wabaId: string;
  businessName: string;
  endpointId: string;
  /** Null when the endpoint is gone. */
  endpointUrl: string | null;
  eventType: EventType | null;
  eventId: string | null;
  state: DeliveryState;
  attempts: number;
  lastStatusCode: number | null;
  lastError: string | null;
  /** How long the last attempt took. */
  lastDurationMs: number | null;
  createdAt: Date;
  finishedAt: Date | null;
  /** Null unless another attempt has its time. */
  nextAttemptAt: Date | null;
  isReplay: boolean;
};

/**
 * What a list shows of these deliveries, in their order. Everything is looked up by keys, in subqueries of their own:
 * joined freely, the planner may read a whole day.
 */
export async function describeDeliveries(
  database: Database,
  keys: readonly { day: string; id: string }[],
): Promise<ListedDelivery[]> {
  if (keys.length === 0) return [];
  return await query<ListedDelivery>(
    database,
    `select d.id, d.waba_id as "wabaId", t.business_name as "businessName", d.endpoint_id as "endpointId",
            e.url as "endpointUrl", ev.event_type as "eventType", ev.event_id as "eventId", d.state, d.attempts,
            d.last_status_code as "lastStatusCode", d.last_error as "lastError",
            a.duration_ms as "lastDurationMs", d.created_at as "createdAt", d.finished_at as "finishedAt",
            case when d.state = 'pending' then d.next_attempt_at end as "nextAttemptAt",
            d.replay_of is not null as "isReplay"
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
