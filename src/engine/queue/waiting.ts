import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { byIndexesOnly } from './trouble.ts';

/** Counting stops here unless the caller wants less, so that a million waiting deliveries cost no more than this many. */
const MAX_COUNTED = 100_000;

/** Deliveries of one endpoint that are not settled, by their states in the queue (states.ts). */
export type WaitingDeliveries = {
  /** At most as much as was to be counted. */
  count: number;
  /** There are more than were counted; the numbers below are then lower bounds. */
  more: boolean;
  /** May be sent as soon as the endpoint takes deliveries. */
  due: number;
  queued: number;
  /** May not be sent yet: `unreleased` and `suspended` together. */
  held: number;
  unreleased: number;
  suspended: number;
  /** Belong to a workflow, most of them between two attempts. */
  retrying: number;
  claimed: number;
  oldestMs: number | null;
  oldestAt: Date | null;
  /** When the oldest was queued of those that are due. */
  oldestDueAt: Date | null;
};

/**
 * Counts what waits for each of these endpoints, which the caller has looked up under their owner. Each state is
 * counted in its own index, and the oldest is the oldest of the heads.
 */
export async function countWaiting(
  database: Database,
  endpointIds: readonly string[],
  maxCounted = MAX_COUNTED,
): Promise<Map<string, WaitingDeliveries>> {
  const limit = maxCounted + 1;
  const rows = await byIndexesOnly(database, (trx) =>
    query<Counted & { id: string }>(trx, COUNT, { endpointIds, limit }),
  );
  return new Map(rows.map(({ id, ...counted }) => [id, { ...totalOf(counted, maxCounted), ...counted }]));
}

type Counted = Omit<WaitingDeliveries, 'count' | 'more'>;

/**
 * SQL of when the oldest due delivery of endpoint `e.id` was queued (column `oldest`), among replays or all others. The
 * range and the order are those of the index: with `endpoint_id =` the planner may go by position alone.
 */
const firstDue = (replay: boolean) => `select created_at as oldest from delivery_queue
  where state = 'due' and (endpoint_id, replay) >= (e.id, ${replay}) and (endpoint_id, replay) <= (e.id, ${replay})
  order by endpoint_id, replay, position limit 1`;

const COUNT = `
  select e.id, due.n::int as due, behind.n::int as queued, (kept.unreleased + kept.suspended)::int as held, kept.unreleased::int as unreleased, kept.suspended::int as suspended,
         in_flight.retrying::int as retrying, in_flight.claimed::int as claimed,
         (extract(epoch from clock_timestamp() - oldest.at) * 1000)::float8 as "oldestMs", oldest.at as "oldestAt",
         least(first_due.oldest, first_replay.oldest) as "oldestDueAt"
    from unnest(:endpointIds::bigint[]) as e (id)
   cross join lateral (select count(*) as n from (
     select 1 from delivery_queue where endpoint_id = e.id and state = 'due' limit :limit) as counted) as due
   cross join lateral (select count(*) as n from (
     select 1 from delivery_queue where endpoint_id = e.id and state = 'queued' limit :limit) as counted) as behind
   cross join lateral (
     select count(*) filter (where state = 'unreleased') as unreleased,
            count(*) filter (where state = 'suspended') as suspended, min(created_at) as oldest
       from (select state, created_at from delivery_queue
              where endpoint_id = e.id and state in ('unreleased', 'suspended') limit :limit) as counted) as kept
   cross join lateral (
     select count(*) filter (where state = 'retrying') as retrying,
            count(*) filter (where state = 'claimed') as claimed, min(created_at) as oldest
       from (select state, created_at from delivery_queue
              where endpoint_id = e.id and state in ('claimed', 'retrying') limit :limit) as counted) as in_flight
    left join lateral (${firstDue(false)}) as first_due on true
    left join lateral (${firstDue(true)}) as first_replay on true
   cross join lateral (
     select least(first_due.oldest, first_replay.oldest, kept.oldest, in_flight.oldest) as at) as oldest`;

function totalOf(counted: Counted, maxCounted: number): { count: number; more: boolean } {
  const total = counted.due + counted.queued + counted.held + counted.retrying + counted.claimed;
  return { count: Math.min(total, maxCounted), more: total > maxCounted };
}

/** So many are counted for pages that show several counts; a page must not take longer because more waits. */
export const MAX_SHOWN_WAITING = 10_000;

/** A bounded count for people: `12`, or `100,000+` when counting stopped there. */
export function shownCount({ count, more }: { count: number; more: boolean }): string {
  return `${count.toLocaleString('en-US')}${more ? '+' : ''}`;
}
