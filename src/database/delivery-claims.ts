import type { Database, Transaction } from './database.ts';
import { execute, query } from './sql.ts';

/** A delivery handed over to a workflow. */
export type HandedOver = {
  deliveryId: string;
  deliveryDay: string;
  eventDay: string;
  eventUuid: string;
  endpointId: string;
};

export type HandOverLimits = {
  /** Handed over and not yet attempted, all endpoints together: bounds what Temporal has to take at once. */
  firstAttempts: number;
  /** The same for one endpoint, so that a hanging one holds few of the slots. */
  firstAttemptsPerEndpoint: number;
  /** Open workflows of one endpoint, first attempts and retries. */
  inFlightPerEndpoint: number;
};

/**
 * Hands due deliveries over to workflows, endpoint by endpoint: at most `firstAttemptsPerEndpoint` each.
 * The turn begins behind `afterEndpointId`, so that endpoints with low ids cannot starve the others.
 * The active endpoints are found by a skip scan of the due index, so a million waiting rows cost nothing.
 */
export async function handOverDue(
  database: Database,
  limits: HandOverLimits,
  afterEndpointId = '0',
): Promise<HandedOver[]> {
  const rows = await query<QueueRow>(
    database,
    `with recursive active (endpoint_id) as (
       (select endpoint_id from delivery_queue where state = 'due' order by endpoint_id limit 1)
       union all
       select (select q.endpoint_id from delivery_queue q
                where q.state = 'due' and q.endpoint_id > active.endpoint_id order by q.endpoint_id limit 1)
         from active where active.endpoint_id is not null
     ), waiting_first as (
       select count(*) as n from (select 1 from delivery_queue
         where state in ('claimed', 'retrying') and attempts = 0 limit :firstAttempts) as f
     ), picked as (
       select due.row_id
         from (select w.id from active join webhook_endpoints w on w.id = active.endpoint_id and w.mode = 'open'
                order by w.id <= :afterEndpointId, w.id) as e
        cross join lateral (
          select count(*) as in_flight, count(*) filter (where attempts = 0) as first_attempts
            from (select attempts from delivery_queue
                   where endpoint_id = e.id and state in ('claimed', 'retrying') limit :inFlightPerEndpoint) as f
        ) as busy
        cross join lateral (
          select ctid as row_id from delivery_queue
           where endpoint_id = e.id and state = 'due' order by position
           limit greatest(0, least(:firstAttemptsPerEndpoint - busy.first_attempts,
                                   :inFlightPerEndpoint - busy.in_flight))
             for update skip locked
        ) as due
        limit (select greatest(0, :firstAttempts - n) from waiting_first)
     )
     update delivery_queue set state = 'retrying', next_attempt_at = clock_timestamp()
      where ctid = any (array(select row_id from picked)) and state = 'due'
     returning delivery_id, delivery_day, event_day, event_uuid, endpoint_id`,
    { ...limits, afterEndpointId },
  );
  return rows.map(toHandedOver);
}

/** Gives deliveries back whose workflow could not be started, so that they are handed over again. */
export async function returnToDue(database: Database, deliveryIds: readonly string[]): Promise<void> {
  await execute(
    database,
    `update delivery_queue set state = 'due', next_attempt_at = null
      where delivery_id = any (?::uuid[]) and state = 'retrying'`,
    [deliveryIds],
  );
}

/**
 * Deliveries whose workflow is overdue by `overdueMs` or lost, and those handed over `firstOverdueMs` ago without a
 * first attempt: their workflow may never have been started. A restart is harmless. At most `limit`.
 */
export async function findOverdue(
  database: Database,
  options: { overdueMs: number; firstOverdueMs: number; limit: number },
): Promise<HandedOver[]> {
  const rows = await query<QueueRow>(
    database,
    `select delivery_id, delivery_day, event_day, event_uuid, endpoint_id from delivery_queue
      where (state = 'retrying' and next_attempt_at < now() - :firstOverdueMs * interval '1 millisecond'
               and next_attempt_at < now()
               - case attempts when 0 then cast(:firstOverdueMs as float8) else :overdueMs end * interval '1 millisecond')
         or (state = 'claimed' and lease_until < now() - :overdueMs * interval '1 millisecond')
      order by next_attempt_at limit :limit`,
    options,
  );
  return rows.map(toHandedOver);
}

type QueueRow = {
  delivery_id: string;
  delivery_day: string;
  event_day: string;
  event_uuid: string;
  endpoint_id: string;
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

/** Looks up the labels of deliveries; those whose event or endpoint is gone are absent. */
export async function labelDeliveries(
  database: Database,
  deliveries: readonly HandedOver[],
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

function toHandedOver(row: QueueRow): HandedOver {
  return {
    deliveryId: row.delivery_id,
    deliveryDay: row.delivery_day,
    eventDay: row.event_day,
    eventUuid: row.event_uuid,
    endpointId: row.endpoint_id,
  };
}

/** A leased delivery and the number of attempts already recorded. */
export type ClaimedDelivery = HandedOver & { attempts: number };

export type LeaseAnswer =
  | { kind: 'claimed'; delivery: ClaimedDelivery }
  | { kind: 'finished' }
  | { kind: 'wait'; waitMs: number; lastError: string | null };

/**
 * Takes the lease of one delivery for `leaseMs`, during which nobody else touches it. `finished`: there is nothing left to do.
 * `wait`: not due yet, behind another, or leased by somebody else for `waitMs` more.
 */
export async function leaseDelivery(
  database: Database,
  lease: { deliveryId: string; deliveryDay: string; token: string; leaseMs: number },
): Promise<LeaseAnswer> {
  const [row] = await query<QueueRow & { attempts: number }>(
    database,
    `update delivery_queue
        set state = 'claimed', token = :token,
            lease_until = clock_timestamp() + :leaseMs * interval '1 millisecond'
      where delivery_id = :deliveryId
        and (state = 'due' or (state = 'retrying' and next_attempt_at <= clock_timestamp())
             or (state = 'claimed' and lease_until < clock_timestamp()))
     returning delivery_id, delivery_day, event_uuid, event_day, endpoint_id, attempts`,
    { token: lease.token, leaseMs: lease.leaseMs, deliveryId: lease.deliveryId },
  );
  if (row === undefined) return await whyNotLeased(database, lease.deliveryId, lease.deliveryDay);
  return { kind: 'claimed', delivery: { ...toHandedOver(row), attempts: row.attempts } };
}

async function whyNotLeased(
  database: Database,
  deliveryId: string,
  deliveryDay: string,
): Promise<LeaseAnswer> {
  const [row] = await query<{ wait_ms: number; last_error: string | null }>(
    database,
    `select coalesce(extract(epoch from
              (case q.state when 'claimed' then q.lease_until else q.next_attempt_at end) - clock_timestamp()
            ) * 1000, 5000)::float8 as wait_ms, d.last_error
       from delivery_queue q left join deliveries d on d.day = ? and d.id = q.delivery_id
      where q.delivery_id = ?`,
    [deliveryDay, deliveryId],
  );
  if (row === undefined) return { kind: 'finished' };
  return { kind: 'wait', waitMs: Math.max(1, row.wait_ms), lastError: row.last_error };
}

/** Puts a claimed delivery on hold for its next attempt. Returns false when the claim is no longer ours. */
export async function scheduleRetry(
  trx: Transaction,
  claim: { deliveryId: string; token: string; attempts: number; delayMs: number },
): Promise<boolean> {
  const changed = await execute(
    trx,
    `update delivery_queue
        set state = 'retrying', token = null, lease_until = null, attempts = :attempts,
            next_attempt_at = clock_timestamp() + :delayMs * interval '1 millisecond'
      where delivery_id = :deliveryId and token = :token and state = 'claimed'`,
    { deliveryId: claim.deliveryId, token: claim.token, attempts: claim.attempts, delayMs: claim.delayMs },
  );
  return changed === 1;
}

/**
 * Gives a claimed delivery back to the queue, where it waits until its endpoint takes deliveries (again).
 * Returns false when the claim is no longer ours.
 */
export async function returnClaimed(
  database: Database,
  claim: { deliveryId: string; token: string; attempts: number },
): Promise<boolean> {
  const changed = await execute(
    database,
    `update delivery_queue
        set state = 'due', token = null, lease_until = null, next_attempt_at = null, attempts = :attempts
      where delivery_id = :deliveryId and token = :token and state = 'claimed'`,
    { deliveryId: claim.deliveryId, token: claim.token, attempts: claim.attempts },
  );
  return changed === 1;
}
