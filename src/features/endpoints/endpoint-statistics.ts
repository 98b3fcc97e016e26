import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

export type EndpointStep = { at: Date; successes: number; failures: number; totalMs: number };

/** Minutes or hours without attempts are there too; `until` is exclusive. */
export async function readEndpointStatistics(
  database: Database,
  wabaId: string,
  endpointId: string,
  { interval, since, until }: { interval: 'minute' | 'hour'; since: Date; until: Date },
): Promise<EndpointStep[]> {
  return await query<EndpointStep>(
    database,
    `select step.at, coalesce(sum(m.successes), 0)::float8 as successes, coalesce(sum(m.failures), 0)::float8 as failures,
            coalesce(sum(m.total_ms), 0)::float8 as "totalMs"
       from generate_series(cast(:since as timestamptz), cast(:until as timestamptz) - interval '1 second',
                            cast(:step as interval)) as step (at)
       left join (
         select date_trunc(:interval, minute) as at, successes, failures, total_ms
           from endpoint_minutes join webhook_endpoints e on e.id = endpoint_id
          where endpoint_id = :endpointId and e.waba_id = :wabaId and minute >= :since and minute < :until
       ) as m on m.at = step.at
      group by step.at order by step.at`,
    { wabaId, endpointId, interval, step: `1 ${interval}`, since, until },
  );
}

/** Attempts of the last 24 hours, and the minutes of the last success and failure. */
export type EndpointActivity = {
  successes: number;
  failures: number;
  lastSuccessAt: Date | null;
  lastFailureAt: Date | null;
};

export async function readEndpointActivity(
  database: Database,
  wabaId: string,
): Promise<Map<string, EndpointActivity>> {
  const rows = await query<EndpointActivity & { id: string }>(
    database,
    `select e.id, coalesce(day.successes, 0)::float8 as successes, coalesce(day.failures, 0)::float8 as failures,
            success.minute as "lastSuccessAt", failure.minute as "lastFailureAt"
       from webhook_endpoints e
       left join lateral (select sum(successes) as successes, sum(failures) as failures from endpoint_minutes
                           where endpoint_id = e.id and minute > now() - interval '24 hours') as day on true
       left join lateral (select minute from endpoint_minutes where endpoint_id = e.id and successes > 0
                           order by minute desc limit 1) as success on true
       left join lateral (select minute from endpoint_minutes where endpoint_id = e.id and failures > 0
                           order by minute desc limit 1) as failure on true
      where e.waba_id = :wabaId`,
    { wabaId },
  );
  return new Map(rows.map(({ id, ...activity }) => [id, activity]));
}
