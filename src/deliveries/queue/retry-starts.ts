import type { Database } from '../../database/database.ts';
import { execute, query } from '../../database/sql.ts';
import type { HandedOver } from './hand-over.ts';

/**
 * Takes deliveries whose retry still has no workflow: those that are due, and of the others as many as the limits leave
 * room for, soonest first. The rest waits in the database until it is due.
 */
export async function takeRetryStarts(
  database: Database,
  limits: { perEndpoint: number; overall: number; limit: number },
): Promise<HandedOver[]> {
  return await query<HandedOver>(
    database,
    `with candidates as materialized (
       select position, endpoint_id, next_attempt_at, next_attempt_at <= clock_timestamp() as is_due
         from delivery_queue where awaits_workflow order by next_attempt_at limit 200 for update skip locked
     ), ranked as (
       select c.*, row_number() over (partition by endpoint_id order by next_attempt_at) as own_rank,
              row_number() over (order by next_attempt_at) as overall_rank
         from candidates c
     ), overall as (
       select count(*) as n from (select 1 from delivery_queue where state = 'retrying' and not awaits_workflow
                                   limit cast(:overall as integer)) as r
     ), own as (
       select e.endpoint_id, (select count(*) from (
                select 1 from delivery_queue q
                 where q.endpoint_id = e.endpoint_id and q.state = 'retrying' and not q.awaits_workflow
                 limit cast(:perEndpoint as integer)) as r) as n
         from (select distinct endpoint_id from candidates) as e
     ), picked as (
       select ranked.position from ranked join own using (endpoint_id) cross join overall
        where ranked.is_due
           or (own_rank <= cast(:perEndpoint as integer) - own.n and overall_rank <= cast(:overall as integer) - overall.n)
        order by next_attempt_at limit cast(:limit as integer)
     )
     update delivery_queue set awaits_workflow = false where position in (select position from picked)
     returning delivery_id as "deliveryId", delivery_day as "deliveryDay", event_day as "eventDay",
               event_uuid as "eventUuid", endpoint_id as "endpointId"`,
    limits,
  );
}

/** Gives back deliveries whose retry workflow could not be started. */
export async function returnRetryStarts(database: Database, deliveryIds: readonly string[]): Promise<void> {
  await execute(
    database,
    `update delivery_queue set awaits_workflow = true
      where delivery_id = any (?::uuid[]) and state = 'retrying'`,
    [deliveryIds],
  );
}
