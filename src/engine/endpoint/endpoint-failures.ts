import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query, queryColumn } from '../../platform/postgres/sql.ts';
import { insertEndpointAlert } from '../notices/alert-notices.ts';

/** When an open endpoint that fails gets an alert: after some failures in a row, or one failure for long. */
const QUIET = { failures: 5, minutes: 1, hours: 1 };

const TOLD_EVERY_HOURS = 1;

/** Counts deliveries that failed permanently, by endpoint, in the transaction that gave them up. */
export async function countFailed(trx: Transaction, failed: ReadonlyMap<string, number>): Promise<void> {
  await execute(
    trx,
    `insert into endpoint_failures as f (endpoint_id, hour, failed)
     select id, date_trunc('hour', now()), n from webhook_endpoints
       join unnest(cast(:ids as bigint[]), cast(:counts as integer[])) as c (id, n) using (id) order by id
     on conflict (endpoint_id, hour) do update set failed = f.failed + excluded.failed`,
    { ids: [...failed.keys()], counts: [...failed.values()] },
  );
}

/** In the last 24 hours; endpoints without any are absent. */
export async function countRecentlyFailed(database: Database, wabaId: string): Promise<Map<string, number>> {
  const rows = await query<{ id: string; failed: number }>(
    database,
    `select e.id, sum(f.failed)::integer as failed
       from webhook_endpoints e join endpoint_failures f on f.endpoint_id = e.id
      where e.waba_id = :wabaId and f.hour > now() - interval '24 hours' group by e.id`,
    { wabaId },
  );
  return new Map(rows.map(({ id, failed }) => [id, failed]));
}

export async function findUntoldFailures(database: Database): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `select distinct e.id from endpoint_failures f join webhook_endpoints e on e.id = f.endpoint_id
      where f.told < f.failed and ${maybeTold('e')}`,
    { hours: TOLD_EVERY_HOURS },
  );
}

const maybeTold = (endpoint: string) =>
  `(${endpoint}.failures_notified_at is null
    or ${endpoint}.failures_notified_at < now() - cast(:hours as float8) * interval '1 hour')`;

/** One alert reports all. False: another process sent it. */
export async function tellFailures(trx: Transaction, endpointId: string): Promise<boolean> {
  // In this order also where deliveries fail: two processes never wait for each other, nor failures for who waits here.
  await query(trx, 'select 1 from webhook_endpoints where id = :endpointId for no key update', {
    endpointId,
  });
  const untold = await query<{ hour: Date; failed: number }>(
    trx,
    `select hour, failed - told as failed from endpoint_failures
      where endpoint_id = :endpointId and told < failed order by hour for update`,
    { endpointId },
  );
  const failed = untold.reduce((sum, hour) => sum + hour.failed, 0);
  const [endpoint] = await query<{ waba_id: string }>(
    trx,
    `update webhook_endpoints as e set failures_notified_at = now()
      where e.id = :endpointId and :failed > 0 and ${maybeTold('e')} returning e.waba_id`,
    { endpointId, failed, hours: TOLD_EVERY_HOURS },
  );
  if (endpoint === undefined) return false;
  const told = 'update endpoint_failures set told = failed where endpoint_id = :endpointId and told < failed';
  await execute(trx, told, { endpointId });
  const count = failed.toLocaleString('en-US');
  const reason = `${count} ${failed === 1 ? 'delivery has' : 'deliveries have'} failed permanently: no more attempts are made`;
  const details = { failed, since: untold[0]?.hour.toISOString() ?? null };
  const alert = 'deliveries_failed' as const;
  await insertEndpointAlert(trx, { wabaId: endpoint.waba_id, endpointId, alert, reason, details });
  return true;
}

/** Open endpoints of which every attempt failed for a while, without an alert. */
export async function findQuietlyFailing(database: Database): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `select e.id from webhook_endpoints e
      where e.mode = 'open' and not e.failing_notified
        and e.failing_since < now() - cast(:minutes as float8) * interval '1 minute'
        and (e.failing_since < now() - cast(:hours as float8) * interval '1 hour'
             or (select sum(m.failures) from endpoint_minutes m
                  where m.endpoint_id = e.id and m.minute >= date_trunc(case when m.is_hour then 'hour' else 'minute' end, e.failing_since)) >= :failures)`,
    QUIET,
  );
}

/** The endpoint stays open, and its deliveries are retried by schedule. */
export async function tellFailing(trx: Transaction, endpointId: string): Promise<void> {
  const reason = 'every attempt fails; deliveries are tried again by the retry schedule';
  await tellOnce(trx, endpointId, { alert: 'failing', reason, told: true });
}

/** They have a "failing" alert and were never stopped. */
export async function findQuietlyRecovered(database: Database): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `select id from webhook_endpoints where failing_notified and mode = 'open' and failing_since is null`,
    {},
  );
}

export async function tellRecovered(trx: Transaction, endpointId: string): Promise<void> {
  await tellOnce(trx, endpointId, { alert: 'recovered', reason: 'an attempt succeeded', told: false });
}

async function tellOnce(
  trx: Transaction,
  endpointId: string,
  { told, ...alert }: { alert: 'failing' | 'recovered'; reason: string; told: boolean },
): Promise<void> {
  const [endpoint] = await query<{ waba_id: string }>(
    trx,
    `update webhook_endpoints set failing_notified = :told
      where id = :endpointId and mode = 'open' and failing_notified <> :told
        and (failing_since is not null) = :told returning waba_id`,
    { endpointId, told },
  );
  if (endpoint !== undefined) {
    await insertEndpointAlert(trx, { wabaId: endpoint.waba_id, endpointId, ...alert });
  }
}

/** No page shows these hours any more. Returns how many it deleted. */
export async function forgetOldFailures(database: Database, days: number, limit: number): Promise<number> {
  return await deleteUpTo(database, limit, 'endpoint_failures', `hour < now() - :days * interval '1 day'`, {
    days,
  });
}
