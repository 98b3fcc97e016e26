import type { Database } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';

export type EndpointStep = { at: Date; successes: number; failures: number; totalMs: number };

/** Attempts of an endpoint of a WABA, minute by minute or hour by hour, also where there were none; `until` exclusive. */
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
