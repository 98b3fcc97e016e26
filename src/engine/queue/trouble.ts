import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query, queryOnly } from '../../platform/postgres/sql.ts';

const WORKFLOW_PREFIX = 'endpoint/';

export function troubleWorkflowId(endpointId: string): string {
  return `${WORKFLOW_PREFIX}${endpointId}`;
}

export function endpointIdOfWorkflow(workflowId: string): string {
  return workflowId.slice(WORKFLOW_PREFIX.length);
}

/** The last attempt of a delivery that failed and still waits; `body` is how the response begins. */
export type FailedAttempt = {
  at: Date;
  statusCode: number | null;
  error: string | null;
  body: Buffer | null;
  conversationId: string | null;
};

/** The deliveries that wait for an endpoint, from a bounded part of its queue. */
export type TroubleSample = {
  /** How many were looked at for the counts by type. */
  looked: number;
  byType: Record<string, number>;
  /** Heads that failed: they wait for their next attempt, or it is under way. */
  failed: number;
  /** For how long the oldest waits that may go out, or is under way; null: none. */
  dueMs: number | null;
  firstFailedAt: Date | null;
  /** The oldest head that no attempt has; one that failed comes first. */
  head: string | null;
  nextRetries: { id: string; attempts: number; at: Date }[];
  failures: FailedAttempt[];
};

/** SQL: the first 1,000 rows of some states at one endpoint, from the index of these states. */
const rowsOf = (state: string, order = '') =>
  `(select * from delivery_queue where endpoint_id = :endpointId and ${state} ${order} limit 1000)`;

/** SQL: one probe for each row looked at. As a plain join the planner may read all events of all days for it. */
const eventOf = (row: string) =>
  `cross join lateral (select * from events where day = ${row}.event_day and id = ${row}.event_uuid limit 1) as e`;

const HEADS = `${rowsOf(`state in ('claimed', 'retrying')`)}
  union all ${rowsOf(`state = 'due'`, 'order by endpoint_id, replay, position')}`;

const SAMPLE = `
  with heads as materialized (${HEADS}),
       looked as materialized (select * from heads union all ${rowsOf(`state = 'queued'`)}
                               union all ${rowsOf(`state in ('unreleased', 'suspended')`)})
  select (select count(*)::integer from looked) as looked,
         (select coalesce(jsonb_object_agg(t.event_type, t.n), '{}') from (
            select e.event_type, count(*) as n from looked l ${eventOf('l')}
             group by e.event_type) as t) as "byType",
         count(*) filter (where attempts > 0)::integer as failed,
         (extract(epoch from clock_timestamp() - min(created_at) filter (where state <> 'retrying')) * 1000)::float8 as "dueMs",
         min(first_failed_at) as "firstFailedAt",
         (select delivery_id from heads where state <> 'claimed' and (attempts > 0 or state = 'due')
           order by attempts = 0, position limit 1) as head
    from heads`;

/** The times of so many retries are compared. */
const NEXT_RETRIES = `
  select delivery_id as id, attempts, next_attempt_at as at
    from (select * from delivery_queue
           where endpoint_id = :endpointId and state in ('claimed', 'retrying') limit 10000) as in_flight
   where next_attempt_at is not null and attempts > 0 order by next_attempt_at limit 5`;

const FAILURES = `
  select a.started_at as at, a.status_code as "statusCode", a.error_message as error,
         substring(a.response_body from 1 for 200) as body, e.conversation_id as "conversationId"
    from (select * from (${HEADS}) as heads where attempts > 0 limit 30) as h
   ${eventOf('h')}
   cross join lateral (select * from attempts where delivery_id = h.delivery_id and day >= h.delivery_day
                        order by attempt desc limit 1) as a
   order by a.started_at desc`;

/** The planner does not know how much an endpoint has, and else reads the whole queue for one that has nothing. */
export async function byIndexesOnly<Result>(
  database: Database,
  read: (trx: Transaction) => Promise<Result>,
): Promise<Result> {
  return await database.transaction(async (trx) => {
    await query(
      trx,
      `select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`,
    );
    return await read(trx);
  });
}

/** Looks at what waits for an endpoint; the cost is bounded however much that is. */
export async function sampleTrouble(database: Database, endpointId: string): Promise<TroubleSample> {
  return await byIndexesOnly(database, async (trx) => {
    const [sample, nextRetries, failures] = await Promise.all([
      queryOnly<Omit<TroubleSample, 'nextRetries' | 'failures'>>(trx, SAMPLE, { endpointId }),
      query<TroubleSample['nextRetries'][number]>(trx, NEXT_RETRIES, { endpointId }),
      query<FailedAttempt>(trx, FAILURES, { endpointId }),
    ]);
    return { ...sample, nextRetries, failures };
  });
}

const PAGE = 1_000;

/** Of these endpoints (null: of all), those that have failing deliveries, or that take none while something waits. */
export async function* listEndpointsInTrouble(
  database: Database,
  ids: readonly string[] | null,
  limit = PAGE,
): AsyncGenerator<string> {
  for (let afterId: string | null = '0'; afterId !== null; ) {
    const page: { id: string }[] = await query(
      database,
      `select e.endpoint_id as id from endpoint_health e
        where (cast(:ids as bigint[]) is null or e.endpoint_id = any (cast(:ids as bigint[])))
          and e.endpoint_id > cast(:afterId as bigint)
          and (exists (select from delivery_queue q
                        where q.endpoint_id = e.endpoint_id and q.state in ('claimed', 'retrying') and q.attempts > 0)
               or (e.mode <> 'open' and exists (select from delivery_queue q
                                                 where q.endpoint_id = e.endpoint_id and q.state <> 'queued')))
        order by e.endpoint_id limit cast(:limit as integer)`,
      { ids, afterId, limit },
    );
    for (const { id } of page) yield id;
    afterId = page.length < limit ? null : (page.at(-1)?.id ?? null);
  }
}
