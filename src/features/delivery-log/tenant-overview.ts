import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** The steps that a chart is made of, the last one that of the present. */
export type ChartSpan = { steps: number; stepMinutes: number };

export type OutcomeStep = { at: Date; successes: number; failures: number };

/** How long events of one step took until they were delivered, in ms; null without any. */
export type LatencyStep = { at: Date; p50Ms: number | null; p95Ms: number | null };

export const CHART_SPANS = {
  hour: { steps: 12, stepMinutes: 5 },
  day: { steps: 24, stepMinutes: 60 },
} satisfies Readonly<Record<string, ChartSpan>>;

const STEP = `make_interval(mins => cast(:stepMinutes as integer))`;
const stepOf = (time: string) => `date_bin(${STEP}, ${time}, timestamptz '2000-01-01 00:00Z')`;

const STEPS = `generate_series(${stepOf('cast(:until as timestamptz)')} - (cast(:steps as integer) - 1) * ${STEP},
                               ${stepOf('cast(:until as timestamptz)')}, ${STEP}) as h (at)`;

/** The attempts of all endpoints of a WABA in the span that ends with the step of `until`. */
export async function readOutcomes(
  database: Database,
  wabaId: string,
  { until, span }: { until: Date; span: ChartSpan },
): Promise<OutcomeStep[]> {
  return await query<OutcomeStep>(
    database,
    `select h.at, coalesce(sum(m.successes), 0)::float8 as successes, coalesce(sum(m.failures), 0)::float8 as failures
       from ${STEPS}
       left join (
         select ${stepOf('minute')} as at, successes, failures
           from endpoint_minutes join webhook_endpoints e on e.id = endpoint_id
          where e.waba_id = :wabaId and minute >= cast(:until as timestamptz) - cast(:steps as integer) * ${STEP}
       ) as m on m.at = h.at
      group by h.at order by h.at`,
    { wabaId, until, ...span },
  );
}

/** A chart needs no more than this to be right to a few percent, and a page must not read a million rows. */
const SAMPLE_PER_STEP = 200;
const LEAST_PER_ENDPOINT = 10;

/** From the newest deliveries of each step and endpoint; at most about `SAMPLE_PER_STEP` of a step. */
export async function readLatency(
  database: Database,
  wabaId: string,
  { until, span }: { until: Date; span: ChartSpan },
): Promise<LatencyStep[]> {
  return await query<LatencyStep>(
    database,
    `with owned as (
       select id, greatest(:least, :sample / count(*) over ()) as share from webhook_endpoints where waba_id = :wabaId
     )
     select h.at, percentile_cont(0.5) within group (order by s.ms) as "p50Ms",
            percentile_cont(0.95) within group (order by s.ms) as "p95Ms"
       from ${STEPS}
       left join lateral (
         select extract(epoch from d.finished_at - d.created_at)::float8 * 1000 as ms
           from owned
          cross join lateral (
            select finished_at, created_at from deliveries
             where waba_id = :wabaId and endpoint_id = owned.id and state = 'delivered'
               and day >= cast(h.at as date) - 1 and day <= cast(h.at as date) + 1
               and created_at >= h.at and created_at < h.at + ${STEP}
             order by created_at desc limit owned.share) as d
       ) as s on true
      group by h.at order by h.at`,
    { wabaId, until, ...span, least: LEAST_PER_ENDPOINT, sample: SAMPLE_PER_STEP },
  );
}
