import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** A place in an endpoint's due deliveries: replays come behind everything else, older before newer. */
export type DuePlace = { replay: boolean; position: string };

/** An endpoint that has something due, the first of which is at `replay` and `position`. */
export type DueEndpoint = DuePlace & {
  endpointId: string;
  /** Whether it takes deliveries. */
  isOpen: boolean;
  maxInFlight: number | null;
  ratePerSecond: number | null;
};

/** How many due deliveries an endpoint may get at once, from which place on. */
export type DueShare = DuePlace & { endpointId: string; share: number };

const SETTINGS = `coalesce(w.mode = 'open', false) as "isOpen", w.max_in_flight as "maxInFlight",
  w.rate_limit_per_second as "ratePerSecond"`;

/**
 * SQL of the recursive expression `active` (endpoint_id, replay, position): the first due delivery of each endpoint
 * behind `:afterEndpointId`. A skip scan: a million deliveries that wait at an endpoint cost one step, and whoever reads
 * only the first rows of it pays for no more.
 */
export const ACTIVE = `active (endpoint_id, replay, position) as (
  (select endpoint_id, replay, position from delivery_queue
    where state = 'due' and endpoint_id > cast(:afterEndpointId as bigint)
    order by endpoint_id, replay, position limit 1)
  union all
  select next.endpoint_id, next.replay, next.position
    from active cross join lateral (
      select q.endpoint_id, q.replay, q.position from delivery_queue q
       where q.state = 'due' and q.endpoint_id > active.endpoint_id
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
       left join webhook_endpoints w on w.id = a.endpoint_id`,
    page,
  );
}

/** Rows that are looked at for what became due lately. */
const MAX_LATEST = 5_000;

/** The endpoints with something due behind `afterPosition`, whatever was taken before it. */
export async function findLatelyDue(database: Database, afterPosition: string): Promise<DueEndpoint[]> {
  return await query<DueEndpoint>(
    database,
    `select l.endpoint_id as "endpointId", l.replay, l.position, ${SETTINGS}
       from (select distinct on (endpoint_id) endpoint_id, replay, position
               from (select endpoint_id, replay, position from delivery_queue
                      where position > cast(:afterPosition as bigint) and state = 'due'
                      order by position limit ${MAX_LATEST}) as latest
              order by endpoint_id, replay, position) as l
       left join webhook_endpoints w on w.id = l.endpoint_id`,
    { afterPosition },
  );
}

/** The last position that was drawn. */
export async function lastPosition(database: Database): Promise<string> {
  const [row] = await query<{ position: string }>(
    database,
    `select coalesce(pg_sequence_last_value(cast('delivery_queue_position_seq' as regclass)), 0) as position`,
  );
  return row?.position ?? '0';
}

/**
 * The common table expressions `in_turn` and `picked` (column row_id): due rows, locked, endpoint by endpoint in the order given, at
 * most `limit`. With `endpoint_id` as a range
 * the planner reads and sorts all that an endpoint has.
 */
export function pickDue(): string {
  return `in_turn as materialized (
    select s.endpoint_id, s.replay, s.position, s.share as free
      from unnest(cast(:endpointIds as bigint[]), cast(:shares as integer[]), cast(:replays as boolean[]),
                  cast(:positions as bigint[])) with ordinality as s (endpoint_id, share, replay, position, turn)
      join webhook_endpoints w on w.id = s.endpoint_id and w.mode = 'open'
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
}

/** The parameters of pickDue. */
export function pickParameters(shares: readonly DueShare[], limit: number) {
  return {
    endpointIds: shares.map((share) => share.endpointId),
    shares: shares.map((share) => share.share),
    replays: shares.map((share) => share.replay),
    positions: shares.map((share) => share.position),
    limit,
  };
}
