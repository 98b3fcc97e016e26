import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { execute, query, queryValue } from '../../platform/postgres/sql.ts';
import { deliveryUuidOf, publicDeliveryId } from '../../platform/public-ids.ts';
import type { EndpointLimits } from '../endpoint/endpoint-settings.ts';
import { GRANT_PROBES } from '../endpoint/probes.ts';
import { STRICTEST_MODE } from '../endpoint/workflow-mode.ts';
import { rowIs } from './states.ts';

/** A delivery under lease, with the event that it carries. */
export type ClaimedDelivery = {
  deliveryId: string;
  deliveryDay: string;
  endpointId: string;
  endpointVersion: number;
  eventDay: string;
  eventUuid: string;
  /** Attempts already recorded; `probes` of them used up no retry. */
  attempts: number;
  probes: number;
  replay: boolean;
  /** A run of its workflow shows it. */
  hasRun: boolean;
  /** Others of its lane may wait behind it; left out: it is not known. */
  isFollowed?: boolean;
  eventType: string;
  eventId: string;
  sequence: string;
  /** Null: its event no longer exists, so nothing could ever be sent. */
  body: Buffer | null;
};

export type TakenPlace = DuePlace & { endpointId: string };

export const CLAIM = `update delivery_queue q
          set state = 'claimed', token = cast(:token as uuid),
              lease_until = clock_timestamp() + :leaseMs * interval '1 millisecond'`;

/** SQL of a claimed delivery, without what is known of its run. */
export const CLAIMED = `delivery_id as "deliveryId", delivery_day as "deliveryDay", endpoint_id as "endpointId",
         endpoint_version as "endpointVersion", event_day as "eventDay", event_uuid as "eventUuid", attempts, probes, replay,
         event_type as "eventType", event_id as "eventId", sequence, body`;

/** SQL that shows the rows of the expression `claimed` as claimed deliveries, in queue order. */
export const SHOW_CLAIMED = `
  select ${CLAIMED}, position, run is not null as "hasRun"
    from queued_with_events(array(select delivery_id from claimed))
   order by position`;

/**
 * Claims due deliveries for `leaseMs`, as many as `shares` and `limit` allow, from endpoints that are open. Returns them in queue order, and what place each had there.
 */
export async function claimDue(
  database: Database,
  { shares, ...claim }: { shares: readonly DueShare[]; limit: number; token: string; leaseMs: number },
): Promise<(ClaimedDelivery & TakenPlace)[]> {
  return await query<ClaimedDelivery & TakenPlace>(
    database,
    `with ${PICK_DUE}, claimed as (
       ${CLAIM}
        where ctid = any (array(select row_id from picked)) and ${rowIs('due', 'q')}
       returning *
     )
     ${SHOW_CLAIMED}`,
    { ...claim, ...columnsOf(shares, 'endpointId', 'share', 'replay', 'position') },
  );
}

/** So many of the oldest and of the newest due deliveries of an endpoint take turns as its probe. */
const PROBED_AT_EITHER_END = 25;

/**
 * SQL of the row of the delivery that is the next probe of the endpoint `h`: each in turn from the oldest on, and every
 * other time one that was never attempted, if there is one. Always the same might be the only one that fails.
 */
const NEXT_PROBE = `
  select row_id from (
    select row_id, attempts, count(*) over () as many, row_number() over (order by replay, position) - 1 as turn
      from ((select ctid as row_id, attempts, replay, position from delivery_queue
              where endpoint_id = h.endpoint_id and state = 'due' order by replay, position limit ${PROBED_AT_EITHER_END})
            union
            (select ctid, attempts, replay, position from delivery_queue
              where endpoint_id = h.endpoint_id and state = 'due' order by replay desc, position desc
              limit ${PROBED_AT_EITHER_END})) as ends) as heads
   order by attempts > 0 and h.probe_failures % 2 = 1, turn < h.probe_failures % (many | 1), turn limit 1`;

/**
 * Claims one due delivery of each endpoint that is probed and whose probe is due: it is the one probe that the
 * endpoint gets within `leaseMs`.
 */
export async function claimProbes(
  database: Database,
  claim: { limit: number; token: string; leaseMs: number },
): Promise<ClaimedDelivery[]> {
  return await query<ClaimedDelivery>(
    database,
    `with picked as (
       select h.endpoint_id, due.row_id
         from endpoint_health h
        cross join lateral (
          select ctid as row_id from delivery_queue
           where ctid = (${NEXT_PROBE}) and ${rowIs('due')} for update skip locked
        ) as due
        where h.mode = 'probing' and h.next_probe_at <= now()
        limit cast(:limit as integer)
     ), ${GRANT_PROBES}, claimed as (
       ${CLAIM}
        where ctid = any (array(select row_id from granted)) and ${rowIs('due', 'q')}
       returning *
     )
     ${SHOW_CLAIMED}`,
    claim,
  );
}

/** Releases claims that were not attempted: they wait until their endpoint takes deliveries. */
export async function releaseClaims(
  database: Database,
  token: string,
  deliveryIds: readonly string[],
): Promise<void> {
  await execute(
    database,
    `update delivery_queue set state = 'due', token = null, lease_until = null, next_attempt_at = null
      where delivery_id = any (:deliveryIds::uuid[]) and token = :token and ${rowIs('claimed')}`,
    { deliveryIds, token },
  );
}

/** No claim is longer. */
export const LONGEST_LEASE = "interval '10 minutes'";

/**
 * Releases what dead processes claimed: their leases have ended, `withinSeconds` ago at most, or end in a future that only a
 * database whose clock was set back since then can have.
 */
export async function releaseExpired(
  database: Database,
  options: { withinSeconds: number; limit: number },
): Promise<number> {
  return await execute(
    database,
    `update delivery_queue set state = 'due', token = null, lease_until = null
      where ctid = any (array(select ctid from delivery_queue
                               where state = 'claimed' and lease_until < now()
                                 and lease_until > now() - cast(:withinSeconds as float8) * interval '1 second'
                               order by lease_until limit cast(:limit as integer) for update skip locked)
                     || array(select ctid from delivery_queue
                               where state = 'claimed' and lease_until > now() + ${LONGEST_LEASE}
                               order by lease_until limit cast(:limit as integer) for update skip locked))`,
    options,
  );
}

/** A place in an endpoint's due deliveries: replays come behind everything else, older before newer. */
type DuePlace = { replay: boolean; position: string };

/** An endpoint that has something due, the first of which is at `replay` and `position`. */
export type DueEndpoint = DuePlace & EndpointLimits & { endpointId: string; isOpen: boolean };

export type DueShare = DuePlace & { endpointId: string; share: number };

const SETTINGS = `coalesce(h.mode = 'open', false) as "isOpen", w.max_in_flight as "maxInFlight",
  w.rate_limit_per_second as "ratePerSecond", ${STRICTEST_MODE} as workflows`;

/**
 * SQL of the recursive expression `active` (endpoint_id, replay, position): the first due delivery of each endpoint
 * behind `:afterEndpointId`, parked ones left out. A skip scan: a million deliveries that wait at an endpoint cost one step, and a reader of
 * the first rows pays for no more.
 */
export const ACTIVE = `active (endpoint_id, replay, position) as (
  (select endpoint_id, replay, position from delivery_queue
    where state = 'due' and not parked and endpoint_id > cast(:afterEndpointId as bigint)
    order by endpoint_id, replay, position limit 1)
  union all
  select next.endpoint_id, next.replay, next.position
    from active cross join lateral (
      select q.endpoint_id, q.replay, q.position from delivery_queue q
       where q.state = 'due' and not q.parked and q.endpoint_id > active.endpoint_id
       order by q.endpoint_id, q.replay, q.position limit 1) as next
)`;

/**
 * The next endpoints behind `afterEndpointId` that have something due, by id; fewer than `limit` are the last ones.
 */
export async function findDueEndpoints(
  database: Database,
  page: { afterEndpointId: string; limit: number },
): Promise<DueEndpoint[]> {
  return await query<DueEndpoint>(
    database,
    `with recursive ${ACTIVE}
     select a.endpoint_id as "endpointId", a.replay, a.position, ${SETTINGS}
       from (select * from active limit cast(:limit as integer)) as a
       left join webhook_endpoints w on w.id = a.endpoint_id left join endpoint_health h on h.endpoint_id = w.id`,
    page,
  );
}

/** SQL: whether something is due that is not parked. */
export const HAS_DUE = `(select true from delivery_queue where state = 'due' and not parked
    order by endpoint_id, replay, position limit 1) is not null`;

/** Rows that are looked at for what became due lately. */
const MAX_LATEST = 5_000;

/** The endpoints with something due behind `afterPosition`, whatever was taken before it. */
export async function findLatelyDue(database: Database, afterPosition: string): Promise<DueEndpoint[]> {
  return await query<DueEndpoint>(
    database,
    `select l.endpoint_id as "endpointId", l.replay, l.position, ${SETTINGS}
       from (select distinct on (endpoint_id) endpoint_id, replay, position
               from (select endpoint_id, replay, position from delivery_queue
                      where position > cast(:afterPosition as bigint) and state = 'due' and not parked
                      order by position limit ${MAX_LATEST}) as latest
              order by endpoint_id, replay, position) as l
       left join webhook_endpoints w on w.id = l.endpoint_id left join endpoint_health h on h.endpoint_id = w.id`,
    { afterPosition },
  );
}

export const LAST_POSITION = `coalesce(pg_sequence_last_value(cast('delivery_queue_position_seq' as regclass)), 0)`;

/** The last position that was drawn. */
export async function lastPosition(database: Database): Promise<string> {
  const position = await queryValue<string>(database, `select ${LAST_POSITION}`);
  return position ?? '0';
}

/**
 * SQL of the expressions `in_turn` and `picked` (row_id): due rows, locked, endpoint by endpoint in the order given, at
 * most `limit`. With `endpoint_id` as a range the planner reads and sorts all that an endpoint has.
 */
const PICK_DUE = `in_turn as materialized (
    select s.endpoint_id, s.replay, s.position, s.share as free
      from unnest(cast(:endpointId as bigint[]), cast(:share as integer[]), cast(:replay as boolean[]),
                  cast(:position as bigint[])) with ordinality as s (endpoint_id, share, replay, position, turn)
      join endpoint_health h on h.endpoint_id = s.endpoint_id and h.mode = 'open'
     order by s.turn
  ), picked as (
    select due.row_id
      from in_turn t
     cross join lateral (
       select ctid as row_id from delivery_queue
        where state = 'due' and endpoint_id = t.endpoint_id and (replay, position) >= (t.replay, t.position)
        order by replay, position limit greatest(0, t.free)
          for update skip locked
     ) as due
     limit cast(:limit as integer)
  )`;

/** The text about a delivery in the Temporal UI. */
export type DeliveryLabel = Pick<
  ClaimedDelivery,
  'deliveryId' | 'deliveryDay' | 'endpointId' | 'eventType' | 'eventId'
> & { endpointUrl: string; wabaId: string; tenantId: string };

/** How the ids of all workflows begin that show a delivery. */
export const RUN_PREFIX = 'delivery/';

/** The id under which operators find a delivery. No eventId: it may hold a customer's phone number. */
export function deliveryWorkflowId({
  endpointId,
  deliveryId,
}: Pick<DeliveryLabel, 'deliveryId' | 'endpointId'>): string {
  return `${RUN_PREFIX}${endpointId}/${publicDeliveryId(deliveryId)}`;
}

const DELIVERY_WORKFLOW = /^delivery\/\d{1,20}\/(dlv_[0-9a-f]{32})$/;

/** The delivery that a workflow with this id shows; null for other workflows. */
export function deliveryIdOfWorkflow(workflowId: string): string | null {
  const publicId = DELIVERY_WORKFLOW.exec(workflowId.slice(0, 80))?.[1];
  return publicId === undefined ? null : deliveryUuidOf(publicId);
}
