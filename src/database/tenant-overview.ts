import type { Database } from './database.ts';
import { query } from './sql.ts';

/** Attempts of one hour by outcome. */
export type HourOfOutcomes = { at: Date; successes: number; failures: number };

/** How long events of one hour took until they were delivered, in ms; null without any. */
export type HourOfLatency = { at: Date; p50Ms: number | null; p95Ms: number | null };

/** The hours of a day up to `until`, the oldest first. */
const HOURS = `generate_series(date_trunc('hour', cast(:until as timestamptz)) - interval '23 hours',
                               date_trunc('hour', cast(:until as timestamptz)), interval '1 hour') as h (at)`;

/** The attempts of all endpoints of a WABA in the 24 hours that end with the one of `until`. */
export async function readHourlyOutcomes(
  database: Database,
  wabaId: string,
  until: Date,
): Promise<HourOfOutcomes[]> {
  return await query<HourOfOutcomes>(
    database,
    `select h.at, coalesce(sum(m.successes), 0)::float8 as successes, coalesce(sum(m.failures), 0)::float8 as failures
       from ${HOURS}
       left join (
         select date_trunc('hour', minute) as at, successes, failures
           from endpoint_minutes join webhook_endpoints e on e.id = endpoint_id
          where e.waba_id = :wabaId and minute >= cast(:until as timestamptz) - interval '24 hours'
       ) as m on m.at = h.at
      group by h.at order by h.at`,
    { wabaId, until },
  );
}

/** A chart needs no more than this to be right to a few percent, and a page must not read a million rows. */
const SAMPLE_PER_HOUR = 200;
const LEAST_PER_ENDPOINT = 10;

/** From the newest deliveries of each hour and endpoint; at most about `SAMPLE_PER_HOUR` of an hour. */
export async function readHourlyLatency(
  database: Database,
  wabaId: string,
  until: Date,
): Promise<HourOfLatency[]> {
  return await query<HourOfLatency>(
    database,
    `with owned as (
       select id, greatest(:least, :sample / count(*) over ()) as share from webhook_endpoints where waba_id = :wabaId
     )
     select h.at, percentile_cont(0.5) within group (order by s.ms) as "p50Ms",
            percentile_cont(0.95) within group (order by s.ms) as "p95Ms"
       from ${HOURS}
       left join lateral (
         select extract(epoch from d.finished_at - d.created_at)::float8 * 1000 as ms
           from owned
          cross join lateral (
            select finished_at, created_at from deliveries
             where waba_id = :wabaId and endpoint_id = owned.id and state = 'delivered'
               and day >= cast(h.at as date) - 1 and day <= cast(h.at as date) + 1
               and created_at >= h.at and created_at < h.at + interval '1 hour'
             order by created_at desc limit owned.share) as d
       ) as s on true
      group by h.at order by h.at`,
    { wabaId, until, least: LEAST_PER_ENDPOINT, sample: SAMPLE_PER_HOUR },
  );
}
