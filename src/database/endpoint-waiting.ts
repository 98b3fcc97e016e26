import type { Database } from './database.ts';
import { query } from './sql.ts';

/** Counting stops here, so that a million waiting deliveries cost no more than this many. */
export const MAX_COUNTED = 100_000;

/** Deliveries of one endpoint that are not settled, by where they stand in the queue. */
export type WaitingDeliveries = {
  /** At most MAX_COUNTED. */
  count: number;
  /** There are more than were counted; the numbers below are then lower bounds. */
  more: boolean;
  /** May be sent as soon as the endpoint takes deliveries. */
  due: number;
  /** Behind another of their lane. */
  queued: number;
  /** Their event is not released yet. */
  held: number;
  /** Belong to a workflow, most of them between two attempts. */
  retrying: number;
  /** An attempt is under way. */
  claimed: number;
  /** Age of the oldest in ms; null when none waits. */
  oldestMs: number | null;
};

/**
 * Counts what waits for each of these endpoints, which the caller has looked up under their owner. Heads and those
 * behind them are counted apart because each has its own index. The oldest of an endpoint is a head, and of those
 * that are due the first by position; so no more rows are read than are counted.
 */
export async function countWaiting(
  database: Database,
  endpointIds: readonly string[],
): Promise<Map<string, WaitingDeliveries>> {
  const rows = await query<Omit<WaitingDeliveries, 'count' | 'more'> & { id: string }>(
    database,
    `select e.id, coalesce(heads.due, 0)::int as due, behind.queued::int as queued,
            coalesce(heads.held, 0)::int as held, coalesce(heads.retrying, 0)::int as retrying,
            coalesce(heads.claimed, 0)::int as claimed,
            (extract(epoch from clock_timestamp() - least(heads.oldest, first_due.oldest, first_replay.oldest,
                                                        in_flight.oldest)) * 1000)::float8 as "oldestMs"
       from unnest(?::bigint[]) as e (id)
      cross join lateral (
        select count(*) filter (where state = 'due') as due, count(*) filter (where state = 'held') as held,
               count(*) filter (where state = 'retrying') as retrying,
               count(*) filter (where state = 'claimed') as claimed, min(created_at) as oldest
          from (select state, created_at from delivery_queue
                 where endpoint_id = e.id and state <> 'queued' limit ?) as counted
      ) as heads
      cross join lateral (
        select count(*) as queued
          from (select 1 from delivery_queue where endpoint_id = e.id and state = 'queued' limit ?) as counted
      ) as behind
       left join lateral (select created_at as oldest from delivery_queue
         where endpoint_id = e.id and state = 'due' and not replay order by position limit 1) as first_due on true
       left join lateral (select created_at as oldest from delivery_queue
         where endpoint_id = e.id and state = 'due' and replay order by position limit 1) as first_replay on true
      cross join lateral (select min(created_at) as oldest from delivery_queue
         where endpoint_id = e.id and state in ('claimed', 'retrying')) as in_flight`,
    [endpointIds, MAX_COUNTED + 1, MAX_COUNTED + 1],
  );
  return new Map(rows.map(({ id, ...counted }) => [id, { ...totalOf(counted), ...counted }]));
}

function totalOf(counted: Omit<WaitingDeliveries, 'count' | 'more'>): { count: number; more: boolean } {
  const total = counted.due + counted.queued + counted.held + counted.retrying + counted.claimed;
  return { count: Math.min(total, MAX_COUNTED), more: total > MAX_COUNTED };
}
