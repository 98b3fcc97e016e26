import type { Database } from '../../database/database.ts';
import { query } from '../../database/sql.ts';
import { type DuePlace, type DueShare, pickDue, pickParameters } from './due-pick.ts';

/** A delivery handed over to a workflow. */
export type HandedOver = {
  deliveryId: string;
  deliveryDay: string;
  eventDay: string;
  eventUuid: string;
  endpointId: string;
};

export type HandOverLimits = {
  /** Handed over at once, all endpoints together: bounds what Temporal has to take. */
  limit: number;
  /** Handed over and not yet attempted: the same for one endpoint, so that a hanging one holds few of the slots. */
  firstAttemptsPerEndpoint: number;
  /** What endpoints may have at present. */
  shares: readonly DueShare[];
};

/**
 * Hands due deliveries of open endpoints over to workflows, endpoint by endpoint in the order of their shares. What
 * a tenant allows at once counts all attempts under way, whoever makes them.
 */
export async function handOverDue(
  database: Database,
  limits: HandOverLimits,
): Promise<(HandedOver & DuePlace)[]> {
  const rows = await query<QueueRow & DuePlace>(
    database,
    `with ${pickDue(
      `least(s.share,
             cast(:firstAttemptsPerEndpoint as integer) - (
               select count(*) from (
                 select 1 from delivery_queue f
                  where f.endpoint_id = w.id and f.state in ('claimed', 'retrying') and f.attempts = 0
                  limit cast(:firstAttemptsPerEndpoint as integer)) as first_attempts),
             case when w.max_in_flight is not null then w.max_in_flight - (
               select count(*) from (
                 select 1 from delivery_queue f
                  where f.endpoint_id = w.id and f.state in ('claimed', 'retrying')
                    and (f.state = 'claimed' or f.next_attempt_at <= clock_timestamp())
                  limit w.max_in_flight) as under_way) end)`,
    )}
     update delivery_queue set state = 'retrying', awaits_workflow = false, next_attempt_at = clock_timestamp()
      where ctid = any (array(select row_id from picked)) and state = 'due'
     returning delivery_id, delivery_day, event_day, event_uuid, endpoint_id, replay, position`,
    {
      ...pickParameters(limits.shares, limits.limit),
      firstAttemptsPerEndpoint: limits.firstAttemptsPerEndpoint,
    },
  );
  return rows.map((row) => ({ ...toHandedOver(row), replay: row.replay, position: row.position }));
}

/**
 * Hands the oldest due delivery of each endpoint that is probed and whose probe is due over to a workflow, unless one
 * of its workflows attempts or is about to: that will be the probe. One that waits for hours keeps no probe away.
 */
export async function handOverProbes(database: Database, limit: number): Promise<HandedOver[]> {
  const rows = await query<QueueRow>(
    database,
    `with picked as (
       select due.row_id
         from webhook_endpoints w
        cross join lateral (
          select ctid as row_id from delivery_queue
           where endpoint_id = w.id and state = 'due' order by replay, position limit 1 for update skip locked
        ) as due
        where w.mode = 'probing' and w.next_probe_at <= now()
          and not exists (select 1 from delivery_queue b
                           where b.endpoint_id = w.id and b.state in ('claimed', 'retrying') and not b.awaits_workflow
                             and (b.state = 'claimed' or b.next_attempt_at < clock_timestamp() + interval '1 second'))
        limit ?
     )
     update delivery_queue set state = 'retrying', awaits_workflow = false, next_attempt_at = clock_timestamp()
      where ctid = any (array(select row_id from picked)) and state = 'due'
     returning delivery_id, delivery_day, event_day, event_uuid, endpoint_id`,
    [limit],
  );
  return rows.map(toHandedOver);
}

/** A delivery that is overdue, and for how long. */
export type Overdue = HandedOver & { overdueMs: number };

/**
 * Takes deliveries whose workflow is overdue by `overdueMs` or lost, and those handed over `firstOverdueMs` ago without
 * a first attempt: their workflow may never have been started. Each is taken by one process and comes up again after
 * `againMs`, behind the others, so that what cannot go on hides nothing. At most `limit` of either kind.
 */
export async function takeOverdue(
  database: Database,
  options: {
    overdueMs: number;
    firstOverdueMs: number;
    againMs: number;
    /** What has been waiting for longer is left out. */
    withinSeconds: number;
    limit: number;
  },
): Promise<Overdue[]> {
  const rows = await query<QueueRow & { overdue_ms: number }>(
    database,
    `with waiting as (
       select position from delivery_queue
        where state = 'retrying' and not awaits_workflow
          and greatest(next_attempt_at, swept_at) < now() - cast(:firstOverdueMs as float8) * interval '1 millisecond'
          and greatest(next_attempt_at, swept_at) > now() - cast(:withinSeconds as float8) * interval '1 second'
          and next_attempt_at < now() - interval '1 millisecond'
              * case attempts when 0 then cast(:firstOverdueMs as float8) else cast(:overdueMs as float8) end
          and (swept_at is null or swept_at < now() - cast(:againMs as float8) * interval '1 millisecond')
        order by greatest(next_attempt_at, swept_at) limit cast(:limit as integer) for update skip locked
     ), lost as (
       select position from delivery_queue
        where state = 'claimed' and not by_session
          and lease_until < now() - cast(:overdueMs as float8) * interval '1 millisecond'
          and lease_until > now() - cast(:withinSeconds as float8) * interval '1 second'
          and (swept_at is null or swept_at < now() - cast(:againMs as float8) * interval '1 millisecond')
        order by lease_until limit cast(:limit as integer) for update skip locked
     )
     update delivery_queue set swept_at = now()
      where position = any (array(select position from waiting union all select position from lost))
     returning delivery_id, delivery_day, event_day, event_uuid, endpoint_id,
               cast(extract(epoch from now() - case state when 'claimed' then lease_until else next_attempt_at end) * 1000
                    as float8) as overdue_ms`,
    options,
  );
  return rows.map((row) => ({ ...toHandedOver(row), overdueMs: row.overdue_ms }));
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

/** A leased delivery. */
export type LeasedDelivery = HandedOver & {
  /** Attempts already recorded; `probes` of them used up no retry. */
  attempts: number;
  probes: number;
  replay: boolean;
  /** Since when later deliveries of its lane go on without it. */
  steppedAsideAt: Date | null;
};

export type LeaseAnswer =
  | { kind: 'claimed'; delivery: LeasedDelivery }
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
  const [row] = await query<QueueRow & Omit<LeasedDelivery, keyof HandedOver>>(
    database,
    `update delivery_queue
        set state = 'claimed', by_session = false, awaits_workflow = false, token = :token,
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
  return { kind: 'claimed', delivery: { ...toHandedOver(row), attempts, probes, replay, steppedAsideAt } };
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
