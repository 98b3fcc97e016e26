import { typeIsOnRequest } from '../../platform/event-type.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { deleteUpTo, execute, query } from '../../platform/postgres/sql.ts';
import { lowestUuidAt } from '../../platform/public-ids.ts';

export const ACTIVITY_STEP = 'activity of WABAs';

/** Hours are kept for the four weeks that are compared, and some days more. */
const KEPT_DAYS = 35;

/** After an absence of all workers, so far back is looked for activity. */
const LONGEST_CATCH_UP_HOURS = 24;

const PARTS = 6;
const PART_MS = 600_000;
const HOUR_MS = PARTS * PART_MS;

/**
 * A WABA is silent when nothing came in hours in which each of the last four weeks had events in some ten-minute parts,
 * and all of them together in many. With ten such parts a week on average, chance alone is silent for so long once in
 * 20,000 times.
 */
const USUAL = { weeks: 4, leastPartsPerWeek: 6, leastParts: 40 };

/** A silence is compared up to this length; a longer one stays noted until something comes. */
const LONGEST_HOURS = 7 * 24;

/** For each ten minutes one look into the index of events. `since`: when this was done last; null: never. */
export async function noteActivity(database: Database, since: Date | null, now: Date): Promise<void> {
  const until = hourOf(now);
  const earliest = until - LONGEST_CATCH_UP_HOURS * HOUR_MS;
  const from = Math.max(earliest, since === null ? earliest : hourOf(since) - HOUR_MS);
  for (let hour = from; hour < until; hour += HOUR_MS) await noteHour(database, hour);
}

/** The beginning of an hour, ms since 1970. */
export function hourOf(at: Date): number {
  return Math.floor(at.getTime() / HOUR_MS) * HOUR_MS;
}

async function noteHour(database: Database, hour: number): Promise<void> {
  const begins = Array.from({ length: PARTS + 1 }, (_, part) => lowestUuidAt(hour + part * PART_MS));
  await execute(
    database,
    `insert into waba_hours (waba_id, hour, active)
     select w.waba_id, :hour, count(*)
       from wabas w cross join unnest(cast(:begins as uuid[]), cast(:ends as uuid[])) as part (begins, ends)
      cross join lateral (select from events e
         where e.waba_id = w.waba_id and e.day = cast(:day as date) and e.id >= part.begins and e.id < part.ends
           and e.event_type <> 'test' and not ${typeIsOnRequest('e.event_type')} limit 1) as found
      where w.removed_at is null group by w.waba_id
     on conflict (waba_id, hour) do update set active = excluded.active`,
    {
      hour: new Date(hour),
      day: new Date(hour).toISOString().slice(0, 10),
      begins: begins.slice(0, PARTS),
      ends: begins.slice(1),
    },
  );
}

/** Forgets up to `limit` hours that nothing is compared with any more, but the last one of a WABA: since then it is silent. */
export async function forgetOldHours(database: Database, limit: number): Promise<number> {
  const which = `waba_hours.hour < now() - ${KEPT_DAYS} * interval '1 day'
    and exists (select from waba_hours later where later.waba_id = waba_hours.waba_id and later.hour > waba_hours.hour)`;
  return await deleteUpTo(database, limit, 'waba_hours', which);
}

export type SilentWaba = { wabaId: string; tenantId: string; since: Date };

/** By the rule above, or since an alert that still lasts. `until`: the hour before which activity is noted. */
export async function listSilentWabas(database: Database, until: Date, limit: number): Promise<SilentWaba[]> {
  return await query<SilentWaba>(
    database,
    `with last as (
       select w.waba_id, w.tenant_id, h.hour as active_at, h.hour + interval '1 hour' as since
         from wabas w
        cross join lateral (select hour from waba_hours where waba_id = w.waba_id order by hour desc limit 1) as h
        where w.removed_at is null and h.hour + interval '1 hour' < :until
     ), silent as (
       select l.* from last l
        where exists (select from alerts a where a.kind = 'waba_silent' and a.subject = l.waba_id
                         and a.over_at is null)
           or (select min(week.parts) >= ${USUAL.leastPartsPerWeek} and sum(week.parts) >= ${USUAL.leastParts}
                 from generate_series(1, ${USUAL.weeks}) as n
                cross join lateral (select coalesce(sum(active), 0) as parts from waba_hours h
                  where h.waba_id = l.waba_id and h.hour < cast(:until as timestamptz) - n * interval '7 days'
                    and h.hour >= greatest(l.since, cast(:until as timestamptz) - ${LONGEST_HOURS} * interval '1 hour')
                                  - n * interval '7 days') as week)
     )
     select s.waba_id as "wabaId", s.tenant_id as "tenantId", s.since from silent s
      where not exists (select from events e where e.waba_id = s.waba_id and e.id >= cast(:present as uuid)
                           and e.day >= cast(:day as date) and e.event_type <> 'test' and not ${typeIsOnRequest('e.event_type')})
      order by s.waba_id limit :limit`,
    {
      until,
      limit,
      present: lowestUuidAt(until.getTime()),
      day: until.toISOString().slice(0, 10),
    },
  );
}
