import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import type { DeliveryPlace } from './claim.ts';

type QueueRow = {
  delivery_id: string;
  delivery_day: string;
  event_day: string;
  event_uuid: string;
  endpoint_id: string;
};

function toPlace(row: QueueRow): DeliveryPlace {
  return {
    deliveryId: row.delivery_id,
    deliveryDay: row.delivery_day,
    eventDay: row.event_day,
    eventUuid: row.event_uuid,
    endpointId: row.endpoint_id,
  };
}

/** A leased delivery. */
type LeasedDelivery = DeliveryPlace & {
  /** Attempts already recorded; `probes` of them used up no retry. */
  attempts: number;
  probes: number;
  replay: boolean;
  /** Since when later deliveries of its lane go on without it. */
  steppedAsideAt: Date | null;
};

export type LeaseResult =
  | { kind: 'claimed'; delivery: LeasedDelivery }
  | { kind: 'finished' }
  | { kind: 'wait'; waitMs: number; lastError: string | null };

/** A delivery loop's attempt mostly ends long before its lease. */
const LOOK_AGAIN_MS = 1_000;

/**
 * Takes the lease of one delivery for its workflow for `leaseMs`, during which no other process touches it. `finished`: there is nothing left to do.
 * `wait`: not due yet, behind another, or leased by another process for `waitMs` more.
 */
export async function leaseDelivery(
  database: Database,
  lease: { deliveryId: string; deliveryDay: string; token: string; leaseMs: number },
): Promise<LeaseResult> {
  const [row] = await query<QueueRow & Omit<LeasedDelivery, keyof DeliveryPlace>>(
    database,
    `update delivery_queue
        set state = 'claimed', by_workflow = true, token = :token,
            lease_until = clock_timestamp() + :leaseMs * interval '1 millisecond'
      where delivery_id = :deliveryId
        and (state = 'due' or (state = 'retrying' and next_attempt_at <= clock_timestamp())
             or (state = 'claimed' and lease_until < clock_timestamp()))
     returning delivery_id, delivery_day, event_uuid, event_day, endpoint_id, attempts, probes, replay,
               stepped_aside_at as "steppedAsideAt"`,
    { token: lease.token, leaseMs: lease.leaseMs, deliveryId: lease.deliveryId },
  );
  if (row === undefined) return await whyNotLeased(database, lease.deliveryId, lease.deliveryDay);
  const { attempts, probes, replay, steppedAsideAt } = row;
  return { kind: 'claimed', delivery: { ...toPlace(row), attempts, probes, replay, steppedAsideAt } };
}

async function whyNotLeased(
  database: Database,
  deliveryId: string,
  deliveryDay: string,
): Promise<LeaseResult> {
  const [row] = await query<{ wait_ms: number; in_loop: boolean; last_error: string | null }>(
    database,
    `select coalesce(extract(epoch from
              (case q.state when 'claimed' then q.lease_until else q.next_attempt_at end) - clock_timestamp()
            ) * 1000, 5000)::float8 as wait_ms,
            q.state = 'claimed' and not q.by_workflow as in_loop, d.last_error
       from delivery_queue q left join deliveries d on d.day = ? and d.id = q.delivery_id
      where q.delivery_id = ?`,
    [deliveryDay, deliveryId],
  );
  if (row === undefined) return { kind: 'finished' };
  const longestMs = row.in_loop ? LOOK_AGAIN_MS : Number.POSITIVE_INFINITY;
  return { kind: 'wait', waitMs: Math.max(1, Math.min(row.wait_ms, longestMs)), lastError: row.last_error };
}
