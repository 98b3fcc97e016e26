import { type LowWater, makeLowWater } from '../../platform/low-water.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query, queryValue } from '../../platform/postgres/sql.ts';
import type { EndpointMode } from '../endpoint/endpoint-settings.ts';
import { ACTIVE, LAST_POSITION } from '../queue/claim.ts';

/** Counting stops here, so that a million waiting deliveries cost no more than this many. */
const MAX_COUNTED_OVERALL = 20_000;

export type Pending = {
  /** By state of the queue; together at most MAX_COUNTED_OVERALL. */
  states: Record<string, number>;
  count: number;
  more: boolean;
};

/** How much is not delivered yet, over all tenants. */
export async function countPending(database: Database): Promise<Pending> {
  const rows = await query<{ state: string; n: number }>(
    database,
    `select state, count(*)::integer as n from (select state from delivery_queue limit ${MAX_COUNTED_OVERALL + 1}) as q
      group by state order by state`,
  );
  const count = rows.reduce((sum, { n }) => sum + n, 0);
  return {
    states: Object.fromEntries(rows.map(({ state, n }) => [state, n])),
    count: Math.min(count, MAX_COUNTED_OVERALL),
    more: count > MAX_COUNTED_OVERALL,
  };
}

/** When the oldest pending delivery was queued; null when none is. */
export async function oldestPendingAt(database: Database, positionsFrom: LowWater): Promise<Date | null> {
  const startMs = performance.now();
  const [row] = await query<{ last: string; position: string | null; createdAt: Date | null }>(
    database,
    `select ${LAST_POSITION} as last, oldest.position, oldest.created_at as "createdAt"
       from (select) as always
       left join (select position, created_at from delivery_queue where position >= cast(:positionsFrom as bigint)
                   order by position limit 1) as oldest on true`,
    { positionsFrom: String(positionsFrom.from() ?? 0) },
  );
  const oldest = row?.position ? Number(row.position) : null;
  const seen = { end: Number(row?.last ?? 0) + 1, oldest };
  positionsFrom.looked({ tookMs: performance.now() - startMs, seen });
  return row?.createdAt ?? null;
}

/** No transaction that queues deliveries takes longer: its statements, and its pauses, are bounded by far less. */
const LAG_MS = 120_000;

/** Looks of a process at one database begin where the one before has shown that nothing older can come. */
const floors = new WeakMap<Database, LowWater>();

/** The floor of all looks with these connections. A delivery keeps its position, so none of them but the first is full. */
export function floorOf(database: Database): LowWater {
  const known = floors.get(database) ?? makeLowWater({ rest: NEVER, lagMs: LAG_MS });
  floors.set(database, known);
  return known;
}

const NEVER = { times: 0, leastMs: Number.POSITIVE_INFINITY };

/**
 * Since when the oldest first attempt waits that may go out now, replays left out; null when none does. An endpoint that
 * is slow by its own settings and takes deliveries is left out: more workers would not help it.
 */
export async function oldestDueAt(database: Database): Promise<Date | null> {
  return await queryValue<Date>(
    database,
    `with recursive ${ACTIVE}
     select min(${DUE_SINCE})
       from active a join webhook_endpoints e on e.id = a.endpoint_id
       join endpoint_health h on h.endpoint_id = e.id and h.mode = 'open'
      cross join lateral (${FIRST_ATTEMPT}) as first
      where (e.rate_limit_per_second is null and e.max_in_flight is null and e.order_scope <> 'endpoint')
         or not exists (select from endpoint_minutes m where m.endpoint_id = e.id and m.successes > 0
                           and m.minute >= date_trunc('minute', now()) - interval '2 minutes')`,
    { afterEndpointId: '0' },
  );
}

export type LateEndpoint = { id: string; wabaId: string; tenantId: string };

/**
 * Up to `limit` endpoints that take deliveries and whose oldest first attempt is due for so many minutes; those of `lasting`
 * until it is due for fewer than half as many.
 */
export async function listLateEndpoints(
  database: Database,
  { minutes, lasting, limit }: { minutes: number; lasting: readonly string[]; limit: number },
): Promise<LateEndpoint[]> {
  return await query<LateEndpoint>(
    database,
    `with recursive ${ACTIVE}
     select e.id, e.waba_id as "wabaId", w.tenant_id as "tenantId"
       from active a
       join webhook_endpoints e on e.id = a.endpoint_id
       join endpoint_health h on h.endpoint_id = e.id and h.mode = 'open' and not h.failing_notified
       join wabas w on w.waba_id = e.waba_id
      cross join lateral (${FIRST_ATTEMPT}) as first
      where ${DUE_SINCE} < now() - interval '1 minute' * cast(:minutes as float8)
                                 * case when e.id = any (cast(:lasting as bigint[])) then 0.5 else 1 end
      order by e.id limit :limit`,
    { afterEndpointId: '0', minutes, lasting, limit },
  );
}

export async function countEndpointModes(database: Database): Promise<Record<string, number>> {
  const rows = await query<{ mode: string; n: number }>(
    database,
    'select mode, count(*)::integer as n from endpoint_health group by mode',
  );
  return Object.fromEntries(rows.map(({ mode, n }) => [mode, n]));
}

/** An endpoint that does not take everything that is sent. */
export type TroubledEndpoint = {
  id: string;
  wabaId: string;
  businessName: string;
  url: string;
  description: string;
  mode: EndpointMode;
  modeReason: string | null;
  modeChangedAt: Date | null;
  failingSince: Date | null;
  /** Of all of them: how many fail, also probed and disabled ones, and how many are paused. */
  counted: { failing: number; paused: number };
};

/**
 * The endpoints of all tenants that are paused, disabled, probed or failing; at most `limit`. Those that fail stand before
 * disabled ones and paused ones are last, so that old cases never hide a new one.
 */
export async function listTroubledEndpoints(database: Database, limit: number): Promise<TroubledEndpoint[]> {
  return await query<TroubledEndpoint>(
    database,
    `select e.id, e.waba_id as "wabaId", t.business_name as "businessName", e.url, e.description, h.mode, h.mode_reason as "modeReason",
            h.mode_changed_at as "modeChangedAt", h.failing_since as "failingSince",
            json_build_object('failing', count(*) filter (where h.mode <> 'paused') over (),
                              'paused', count(*) filter (where h.mode = 'paused') over ()) as counted
       from webhook_endpoints e
       join endpoint_health h on h.endpoint_id = e.id
       join wabas w on w.waba_id = e.waba_id
       join tenants t on t.id = w.tenant_id
      where h.mode <> 'open' or h.failing_since is not null
      order by case h.mode when 'paused' then 2 when 'disabled' then 1 else 0 end,
               coalesce(h.failing_since, h.mode_changed_at) desc, e.id limit :limit`,
    { limit },
  );
}

/** So many deliveries of an endpoint are looked at for its last error: of what waits, the first in turn have failed first. */
const LOOKED_AT = 5;

/** Why the latest attempt of a delivery failed that waits for each of these endpoints; without those of which none did. */
export async function readLastErrors(
  database: Database,
  endpointIds: readonly string[],
): Promise<Map<string, string>> {
  const rows = await query<{ id: string; error: string | null; statusCode: number | null }>(
    database,
    `select e.id, failed.error, failed."statusCode" from unnest(cast(:endpointIds as bigint[])) as e (id)
      cross join lateral (
        select d.last_error as error, d.last_status_code as "statusCode"
          from ((select delivery_day, delivery_id from delivery_queue
                  where endpoint_id = e.id and state in ('claimed', 'retrying') limit ${LOOKED_AT})
                union all
                (select delivery_day, delivery_id from delivery_queue where endpoint_id = e.id and state = 'due'
                  order by endpoint_id, replay, position limit ${LOOKED_AT})) as q
          join deliveries d on d.day = q.delivery_day and d.id = q.delivery_id
         where d.last_error is not null or d.last_status_code is not null limit 1) as failed`,
    { endpointIds },
  );
  return new Map(
    rows.map(({ id, error, statusCode }) => [id, error ?? `the endpoint returned ${statusCode}`]),
  );
}

/** So many retries that are due again are passed over for the first attempt behind them. */
const MAX_PASSED_OVER = 100;

/** SQL of when the oldest due first attempt at endpoint `e.id` was queued (column `oldest`), without replays. */
const FIRST_ATTEMPT = `select oldest from (
    select created_at as oldest, attempts from delivery_queue
     where state = 'due' and (endpoint_id, replay) >= (e.id, false) and (endpoint_id, replay) <= (e.id, false)
     order by endpoint_id, replay, position limit ${MAX_PASSED_OVER}) as in_turn
  where attempts = 0 limit 1`;

/** While its endpoint was not open, nothing was due. */
const DUE_SINCE = 'greatest(first.oldest, h.mode_changed_at)';
