/** How many deliveries each endpoint may get at once. */
export type FreeSlots = {
  /** Endpoints with a number of their own; the others have `otherwise`. */
  endpointIds: readonly string[];
  free: readonly number[];
  otherwise: number;
};

const FREE = 'coalesce(slots.free, cast(:slotOtherwise as integer))';

/**
 * The common table expressions `active` and `picked` (column row_id): due rows, locked, endpoint by endpoint, oldest
 * first, replays behind everything else. Parameters: slotIds, slotFree, slotOtherwise, afterEndpointId, limit.
 * `free` is the SQL of an endpoint's share.
 *
 * The active endpoints are found by a skip scan of the due index, so a million waiting rows cost nothing. The turn
 * begins behind `afterEndpointId`, so that endpoints with low ids cannot starve the others.
 */
export function pickDue(free = FREE): string {
  return `active (endpoint_id) as (
    (select endpoint_id from delivery_queue where state = 'due' order by endpoint_id limit 1)
    union all
    select (select q.endpoint_id from delivery_queue q
             where q.state = 'due' and q.endpoint_id > active.endpoint_id order by q.endpoint_id limit 1)
      from active where active.endpoint_id is not null
  ), slots (endpoint_id, free) as (
    select * from unnest(cast(:slotIds as bigint[]), cast(:slotFree as integer[]))
  ), in_turn as (
    select w.id, ${free} as free
      from active join webhook_endpoints w on w.id = active.endpoint_id and w.mode = 'open'
      left join slots on slots.endpoint_id = w.id
     order by w.id <= cast(:afterEndpointId as bigint), w.id
  ), picked as (
    select due.row_id
      from in_turn
     cross join lateral (
       select ctid as row_id from delivery_queue
        where endpoint_id = in_turn.id and state = 'due' order by replay, position
        limit greatest(0, in_turn.free)
          for update skip locked
     ) as due
     limit cast(:limit as integer)
  )`;
}

/** The parameters of pickDue. */
export function pickParameters(slots: FreeSlots, afterEndpointId: string, limit: number) {
  return {
    slotIds: slots.endpointIds,
    slotFree: slots.free,
    slotOtherwise: slots.otherwise,
    afterEndpointId,
    limit,
  };
}
