import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query, queryColumn, queryValue } from '../../platform/postgres/sql.ts';
import { type EndpointChange, RECORD_CHANGE } from './endpoint-changes.ts';
import { carryMode } from './former-columns.ts';

export type EndpointCounts = {
  endpointId: string;
  successes: number;
  failures: number;
  /** Without those of a delivery that had failed within the minutes that the breaker looks at. */
  failedDeliveries: number;
  totalMs: number;
};

const ADDED = `successes = endpoint_minutes.successes + excluded.successes,
  failures = endpoint_minutes.failures + excluded.failures,
  failed_deliveries = endpoint_minutes.failed_deliveries + excluded.failed_deliveries,
  total_ms = endpoint_minutes.total_ms + excluded.total_ms`;

/** Adds to the present minute, which is the database's: processes whose clocks differ would not add up. */
export async function addEndpointCounts(trx: Transaction, counts: readonly EndpointCounts[]): Promise<void> {
  await execute(
    trx,
    `insert into endpoint_minutes (endpoint_id, minute, successes, failures, failed_deliveries, total_ms)
     select endpoint_id, date_trunc('minute', now()), successes, failures, failed_deliveries, total_ms
       from unnest(:endpointId::bigint[], :successes::integer[], :failures::integer[], :failedDeliveries::integer[], :totalMs::float8[])
              as m (endpoint_id, successes, failures, failed_deliveries, total_ms) order by 1
     on conflict (endpoint_id, minute) do update
        set ${ADDED}`,
    columnsOf(counts, 'endpointId', 'successes', 'failures', 'failedDeliveries', 'totalMs'),
  );
}

/** Notes since when nothing succeeds, by endpoint whether an attempt has succeeded. */
export async function noteWorking(trx: Transaction, works: ReadonlyMap<string, boolean>): Promise<void> {
  await execute(
    trx,
    `update endpoint_health set failing_since = case when failing_since is null then now() end,
            recovered_at = case when failing_since is null then recovered_at else now() end
      where endpoint_id = any (array(
        select endpoint_id from endpoint_health
         where endpoint_id = any (cast(:working as bigint[])) and failing_since is not null
            or endpoint_id = any (cast(:failing as bigint[])) and failing_since is null
         order by endpoint_id for no key update))`,
    {
      working: [...works.keys()].filter((id) => works.get(id)),
      failing: [...works.keys()].filter((id) => !works.get(id)),
    },
  );
}

type FailingEndpoint = { endpointId: string; failed: number; deliveries: number };

/** Most deliveries failed within `minutes`, since the endpoint was last switched on, over all processes. */
export async function findMostlyFailing(
  database: Database,
  endpointIds: readonly string[],
  rule: { minutes: number; leastFailures: number; share: number },
): Promise<FailingEndpoint[]> {
  return await query<FailingEndpoint>(
    database,
    `select h.endpoint_id as "endpointId", sum(m.failed_deliveries)::integer as failed,
            sum(m.failed_deliveries + m.successes)::integer as deliveries
       from endpoint_health h join endpoint_minutes m using (endpoint_id)
      where h.endpoint_id = any (cast(:endpointIds as bigint[])) and h.mode = 'open'
        and m.minute > now() - :minutes * interval '1 minute'
        and m.minute >= date_trunc('minute', h.mode_changed_at) + interval '1 minute'
      group by h.endpoint_id
     having sum(m.failed_deliveries) >= cast(:leastFailures as integer)
        and sum(m.failed_deliveries) >= cast(:share as float8) * sum(m.failed_deliveries + m.successes)`,
    { endpointIds, ...rule },
  );
}

/** They take deliveries or probes, and failed in the last hour too. */
export async function findFailingFor(database: Database, hours: number): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `select h.endpoint_id from endpoint_health h
      where h.mode in ('open', 'probing') and h.failing_since < now() - :hours * interval '1 hour'
        and exists (select 1 from endpoint_minutes m
                     where m.endpoint_id = h.endpoint_id and m.failures > 0 and m.minute > now() - interval '1 hour')`,
    { hours },
  );
}

/** For so long charts show single minutes; the breaker looks at the last five. */
const MINUTES_KEPT_DAYS = 2;

/** Minutes become hours; returns how many did. */
export async function foldOldMinutes(database: Database, limit: number): Promise<number> {
  return (
    (await queryValue<number>(
      database,
      `with old as (
       delete from endpoint_minutes where ctid = any (array(
         select ctid from endpoint_minutes
          where not is_hour and minute < date_trunc('hour', now()) - ${MINUTES_KEPT_DAYS} * interval '1 day'
          order by is_hour, minute limit :limit))
       returning endpoint_id, minute, successes, failures, failed_deliveries, total_ms
     ), hours as (
       insert into endpoint_minutes (endpoint_id, minute, is_hour, successes, failures, failed_deliveries, total_ms)
       select endpoint_id, date_trunc('hour', minute), true, sum(successes), sum(failures), sum(failed_deliveries),
              sum(total_ms)
         from old group by 1, 2 order by 1, 2
       on conflict (endpoint_id, minute) do update
          set ${ADDED}, is_hour = true
     )
     select count(*)::integer as folded from old`,
      { limit },
    )) ?? 0
  );
}

/** No chart shows these hours any more. Returns how many it deleted. */
export async function forgetOldChartHours(database: Database, days: number, limit: number): Promise<number> {
  const which = `is_hour and minute < now() - :days * interval '1 day'`;
  return await deleteUpTo(database, limit, 'endpoint_minutes', which, { days });
}

/** Only probes go out from now on, the first after `probeAfterMs`. False when the endpoint was not open any more. */
export async function startProbing(
  trx: Transaction,
  endpointId: string,
  { probeAfterMs, reason }: { probeAfterMs: number; reason: string },
): Promise<boolean> {
  return await changeMode(trx, endpointId, { change: 'failing', reason }, [
    `mode = 'probing', mode_reason = :reason, failing_since = coalesce(failing_since, now()), failing_notified = true,
     probe_failures = 0, next_probe_at = clock_timestamp() + :probeAfterMs * interval '1 millisecond'`,
    `mode = 'open'`,
    { probeAfterMs },
  ]);
}

/** The outcomes of a group of attempts at an endpoint. */
export type EndpointReport = {
  endpointId: string;
  /** Deliveries wait for retries because it is in trouble: the next success plans when they are brought forward. */
  isTroubled: boolean;
  /** Ms until the next probe, after one that failed; null: none did. */
  probeAfterMs: number | null;
  /** 0 for a probe that failed by a fault of ours. */
  failedProbes: number;
};

const IS_PROBE = `r.probe_after_ms is not null and h.mode = 'probing'`;

/** A process that freezes with these locks holds up what others record of the same endpoints: the server ends its transaction soon. */
const FREEZE_LIMIT = `set_config('idle_in_transaction_session_timeout', '3s', true)`;

/** Until the transaction ends; in the order of their ids, so that two transactions never wait for each other. */
export async function lockHealth(trx: Transaction, endpointIds: readonly string[]): Promise<void> {
  const text = `select ${FREEZE_LIMIT} from endpoint_health where endpoint_id = any (cast(:endpointIds as bigint[]))
                 order by endpoint_id for no key update`;
  await query(trx, text, { endpointIds });
}

/** Notes what attempts say about endpoints, whose health their transaction has locked. */
export async function noteReports(trx: Transaction, reports: readonly EndpointReport[]): Promise<void> {
  await execute(
    trx,
    `update endpoint_health h
        set has_backlog = h.has_backlog or r.troubled,
            backlog_due_at = case when not r.troubled then h.backlog_due_at end,
            probe_failures = h.probe_failures + case when ${IS_PROBE} then r.failed_probes else 0 end,
            next_probe_at = case when ${IS_PROBE} then clock_timestamp() + r.probe_after_ms * interval '1 millisecond'
                                 else h.next_probe_at end
       from unnest(cast(:endpointId as bigint[]), cast(:isTroubled as boolean[]), cast(:probeAfterMs as float8[]),
                   cast(:failedProbes as integer[])) as r (id, troubled, probe_after_ms, failed_probes)
      where h.endpoint_id = r.id and (r.troubled and (not h.has_backlog or h.backlog_due_at is not null) or ${IS_PROBE})`,
    columnsOf(reports, 'endpointId', 'isTroubled', 'probeAfterMs', 'failedProbes'),
  );
}

/** The deliveries that waited go first. */
export async function endProbing(trx: Transaction, endpointId: string): Promise<boolean> {
  return await changeMode(trx, endpointId, { change: 'recovered', reason: 'a probe succeeded' }, [
    `mode = 'open', mode_reason = null, failing_since = null, failing_notified = false, probe_failures = 0,
     next_probe_at = null, backlog_due_at = case when has_backlog then backlog_due(backlog_retried_at) end`,
    `mode = 'probing'`,
    {},
  ]);
}

/** Null is whichever version; events wait. False when the endpoint was not on, or its settings are of another version or being changed. */
export async function disableEndpoint(
  trx: Transaction,
  endpointId: string,
  { version, reason }: { version: number | null; reason: string },
): Promise<boolean> {
  return await changeMode(trx, endpointId, { change: 'disabled', reason }, [
    `mode = 'disabled', mode_reason = :reason, next_probe_at = null, failing_notified = true`,
    `mode in ('open', 'probing') and (cast(:version as integer) is null or endpoint_id = any (array(
        select id from webhook_endpoints where id = :endpointId and version = cast(:version as integer) for share skip locked)))`,
    { version },
  ]);
}

/** Changes an endpoint that meets the condition, records that and notifies the workers. False: it does not meet it. */
async function changeMode(
  trx: Transaction,
  endpointId: string,
  recorded: Pick<EndpointChange, 'change' | 'reason'>,
  [columns, condition, values]: [columns: string, condition: string, values: Record<string, number | null>],
): Promise<boolean> {
  const changed = await execute(
    trx,
    `with changed as (
       update endpoint_health set ${columns}, mode_changed_at = now()
        where endpoint_id = :endpointId and ${condition} returning endpoint_id, mode, mode_reason)
     ${RECORD_CHANGE}`,
    { endpointId, ...recorded, ...values },
  );
  if (changed === 0) return false;
  await carryMode(trx, endpointId);
  trx.notify('heliograph_endpoints', endpointId);
  return true;
}
