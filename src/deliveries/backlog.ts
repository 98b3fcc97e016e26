import type { EndpointMode } from '../endpoints/endpoint-settings.ts';
import type { Database } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';
import { ACTIVE } from './queue/due-pick.ts';
import { firstDue } from './queue/read-waiting.ts';

/** Counting stops here, so that a million waiting deliveries cost no more than this many. */
const MAX_COUNTED = 20_000;

/** Open deliveries of all tenants. */
export type Backlog = {
  /** By state of the queue; together at most MAX_COUNTED. */
  states: Record<string, number>;
  count: number;
  /** There are more than were counted. */
  more: boolean;
  /** When the oldest was queued; null when nothing is open. */
  oldestAt: Date | null;
};

/** How much is not delivered yet, over all tenants. */
export async function readBacklog(database: Database): Promise<Backlog> {
  const rows = await query<{ state: string; n: number }>(
    database,
    `select state, count(*)::integer as n from (select state from delivery_queue limit ${MAX_COUNTED + 1}) as q
      group by state order by state`,
  );
  const [oldest] = await query<{ createdAt: Date }>(
    database,
    'select created_at as "createdAt" from delivery_queue order by position limit 1',
  );
  const count = rows.reduce((sum, { n }) => sum + n, 0);
  return {
    states: Object.fromEntries(rows.map(({ state, n }) => [state, n])),
    count: Math.min(count, MAX_COUNTED),
    more: count > MAX_COUNTED,
    oldestAt: oldest?.createdAt ?? null,
  };
}

/** Since when the oldest first attempt waits that may go out now, replays left out; null when none does. */
export async function oldestDueAt(database: Database): Promise<Date | null> {
  const [row] = await query<{ dueAt: Date | null }>(
    database,
    `with recursive ${ACTIVE}
     select min(first.oldest) as "dueAt"
       from active a join webhook_endpoints e on e.id = a.endpoint_id and e.mode = 'open'
      cross join lateral (${firstDue(false)}) as first`,
    { afterEndpointId: '0' },
  );
  return row?.dueAt ?? null;
}

/** How many endpoints of all tenants are in each mode. */
export async function countEndpointModes(database: Database): Promise<Record<string, number>> {
  const rows = await query<{ mode: string; n: number }>(
    database,
    'select mode, count(*)::integer as n from webhook_endpoints group by mode',
  );
  return Object.fromEntries(rows.map(({ mode, n }) => [mode, n]));
}

/** An endpoint that does not take everything that is sent. */
export type TroubledEndpoint = {
  id: string;
  wabaId: string;
  businessName: string;
  url: string;
  mode: EndpointMode;
  modeReason: string | null;
  modeChangedAt: Date | null;
  failingSince: Date | null;
};

/** The endpoints of all tenants that are paused, disabled, probed or failing; at most `limit`. */
export async function listTroubledEndpoints(database: Database, limit: number): Promise<TroubledEndpoint[]> {
  return await query<TroubledEndpoint>(
    database,
    `select e.id, e.waba_id as "wabaId", t.business_name as "businessName", e.url, e.mode, e.mode_reason as "modeReason",
            e.mode_changed_at as "modeChangedAt", e.failing_since as "failingSince"
       from webhook_endpoints e
       join wabas w on w.waba_id = e.waba_id
       join tenants t on t.id = w.tenant_id
      where e.mode <> 'open' or e.failing_since is not null
      order by coalesce(e.failing_since, e.mode_changed_at) nulls last, e.id limit ?`,
    [limit],
  );
}

/** A worker process that was heard of lately. */
export type SeenWorker = { id: string; seenAt: Date };

/** The worker processes of the last hour, the latest heard first. */
export async function listSeenWorkers(database: Database): Promise<SeenWorker[]> {
  return await query<SeenWorker>(
    database,
    `select id, seen_at as "seenAt" from worker_processes
      where seen_at > now() - interval '1 hour' order by seen_at desc limit 50`,
  );
}
