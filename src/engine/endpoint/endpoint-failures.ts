import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query, queryOne } from '../../platform/postgres/sql.ts';

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

/** The endpoints with deliveries that failed permanently since failures of theirs were last taken. */
export async function listUntoldFailures(
  database: Database,
): Promise<{ endpointId: string; wabaId: string }[]> {
  return await query<{ endpointId: string; wabaId: string }>(
    database,
    `select distinct e.id as "endpointId", e.waba_id as "wabaId"
       from endpoint_failures f join webhook_endpoints e on e.id = f.endpoint_id where f.told < f.failed`,
  );
}

/** For a transaction that makes a notice of them. Null: another process took them. */
export async function takeUntoldFailures(
  trx: Transaction,
  endpointId: string,
): Promise<{ failed: number; since: Date } | null> {
  return await queryOne<{ failed: number; since: Date }>(
    trx,
    `with untold as (
       select endpoint_id, hour, failed - told as failed from endpoint_failures
        where endpoint_id = :endpointId and told < failed order by hour for update
     ), taken as (
       update endpoint_failures f set told = f.failed from untold u
        where f.endpoint_id = u.endpoint_id and f.hour = u.hour returning u.failed, u.hour
     ) select sum(failed)::integer as failed, min(hour) as since from taken having count(*) > 0`,
    { endpointId },
  );
}

/** No page shows these hours any more. Returns how many it deleted. */
export async function forgetOldFailures(database: Database, days: number, limit: number): Promise<number> {
  return await deleteUpTo(database, limit, 'endpoint_failures', `hour < now() - :days * interval '1 day'`, {
    days,
  });
}
