import type { Endpoint } from '../../engine/endpoint/store.ts';
import { RUN_PREFIX } from '../../engine/queue/claim.ts';
import { typeIsAmong } from '../../platform/event-type.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query, queryOnly } from '../../platform/postgres/sql.ts';

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

export type RunCount = { deliveries: number; withRun: number };

/** Newest deliveries that are looked at for those that were attempted. */
const LOOKED_AT = 1_000;

/**
 * Of the last 100 attempted deliveries of seven days, how many have a run; where only some event types always get one, of
 * the deliveries of these.
 */
export async function countRuns(
  database: Database,
  endpoint: Pick<Endpoint, 'id' | 'wabaId' | 'deliveryWorkflows' | 'alwaysWorkflowsFor'>,
): Promise<RunCount> {
  const { id, wabaId, deliveryWorkflows, alwaysWorkflowsFor } = endpoint;
  return await queryOnly<RunCount>(
    database,
    `select count(*)::integer as deliveries,
            (count(*) filter (where starts_with(workflow_id, :prefix)))::integer as "withRun"
       from (select d.workflow_id
               from (select event_day, event_uuid, workflow_id, attempts, created_at from deliveries
                      where waba_id = :wabaId and endpoint_id = :id and day > cast(now() at time zone 'utc' as date) - 7
                      order by created_at desc limit ${LOOKED_AT}) as d
               left join events e on e.day = d.event_day and e.id = d.event_uuid
              where d.attempts > 0
                and (cast(:types as text[]) is null or ${typeIsAmong('e.event_type', 'cast(:types as text[])')})
              order by d.created_at desc limit 100) as last`,
    { id, wabaId, prefix: RUN_PREFIX, types: deliveryWorkflows === 'always' ? null : alwaysWorkflowsFor },
  );
}
