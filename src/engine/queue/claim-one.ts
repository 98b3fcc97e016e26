import type { Database } from '../../platform/postgres/database.ts';
import { query, queryOne } from '../../platform/postgres/sql.ts';
import { CLAIM, type ClaimedDelivery, SHOW_CLAIMED } from './claim.ts';
import { type DeliveryEnd, findDeliveryEnds } from './delivery-log.ts';

/** One delivery, claimed for the activity of its workflow, or the reason why it cannot be. */
export type OneClaim =
  | { kind: 'claimed'; delivery: ClaimedDelivery }
  | { kind: 'waiting'; waiting: WaitingDelivery }
  /** It has left the queue; null when the log no longer has it. */
  | { kind: 'settled'; end: DeliveryEnd | null };

export type WaitingDelivery = {
  state: string;
  /** Until its attempt is due, or until the lease of another attempt ends; null when neither is known. */
  waitMs: number | null;
  mode: string;
  /** Until the next probe of its endpoint; null unless that is probed. */
  probeMs: number | null;
  lastError: string | null;
  /** Since when later deliveries of its lane go on without it. */
  steppedAsideAt: Date | null;
};

type One = { deliveryId: string; deliveryDay: string };

/**
 * Claims one delivery for `leaseMs` if it may be attempted now: its time has come and its endpoint is open. The test
 * event may go to any endpoint, so that a tenant can see what is wrong with it.
 */
export async function claimOne(
  database: Database,
  claim: One & { token: string; leaseMs: number },
): Promise<OneClaim> {
  const { deliveryId, deliveryDay, token, leaseMs } = claim;
  const [row] = await query<ClaimedDelivery>(
    database,
    `with claimed as (
       ${CLAIM}
         from endpoint_health h
        where q.delivery_id = cast(:deliveryId as uuid) and h.endpoint_id = q.endpoint_id
          and (q.state = 'due' or q.state = 'retrying' and q.next_attempt_at <= (select clock_timestamp()))
          and (h.mode = 'open'
               or exists (select from queued_with_events(array[q.delivery_id]) as e where e.event_type = 'test'))
       returning q.*
     )
     ${SHOW_CLAIMED}`,
    { deliveryId, token, leaseMs },
  );
  if (row !== undefined) return { kind: 'claimed', delivery: row };
  const waiting = await findWaiting(database, { deliveryId, deliveryDay });
  if (waiting !== null) return { kind: 'waiting', waiting };
  const ends = await findDeliveryEnds(database, [{ deliveryId, deliveryDay }]);
  return { kind: 'settled', end: ends.get(deliveryId) ?? null };
}

async function findWaiting(database: Database, one: One): Promise<WaitingDelivery | null> {
  return await queryOne<WaitingDelivery>(
    database,
    `select q.state, h.mode, d.last_error as "lastError", q.stepped_aside_at as "steppedAsideAt",
            cast(extract(epoch from case q.state when 'claimed' then q.lease_until when 'retrying' then q.next_attempt_at end
              - clock_timestamp()) * 1000 as float8) as "waitMs",
            case h.mode when 'probing'
              then cast(extract(epoch from h.next_probe_at - clock_timestamp()) * 1000 as float8) end as "probeMs"
       from delivery_queue q
       join endpoint_health h using (endpoint_id)
       left join deliveries d on d.day = cast(:deliveryDay as date) and d.id = q.delivery_id
      where q.delivery_id = cast(:deliveryId as uuid)`,
    one,
  );
}
