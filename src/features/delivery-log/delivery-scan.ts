import type { Database } from '../../platform/postgres/database.ts';
import { type Binding, query, queryColumn } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7, lowestUuidAt } from '../../platform/public-ids.ts';
import { type DeliveryFilter, deliveryConditions } from './delivery-filter.ts';

/** A delivery, and where it stands in the list: by day, then time in microseconds, then id, the newest first. */
export type DeliveryPosition = { day: string; atMicros: string; id: string };

export type Scan = {
  found: DeliveryPosition[];
  /** Where to go on; null: the range has been gone through. */
  next: DeliveryPosition | null;
};

export type ScanPage = { before: DeliveryPosition | null; limit: number };

/** How long one page may look for what a filter wants, before it says how far it came. */
export const SEARCH_MS = 15;

const ROWS_PER_STEP = 4_000;

const DAY_MS = 86_400_000;
/** The clock of the database, which dates a delivery, may be beside that of the process that makes its id. */
const CLOCK_SPARE_MS = 60_000;
const LOWEST_ID = '00000000-0000-0000-0000-000000000000';

type Step = { found: DeliveryPosition[]; frontier: DeliveryPosition | null };
type StepRange = { before: DeliveryPosition; sinceMs: number; limit: number; rows: number };

/**
 * Goes back over the deliveries of a WABA (null: of all, for operators), day by day, so that each statement looks into
 * one partition. When a filter passes over much, it stops at the deadline with fewer than `limit`.
 */
export async function scanDeliveries(
  database: Database,
  wabaId: string | null,
  filter: DeliveryFilter & { sinceMs: number },
  page: ScanPage,
): Promise<Scan> {
  const deadlineMs = performance.now() + SEARCH_MS;
  const untilMs = filter.untilMs ?? Date.now() + CLOCK_SPARE_MS;
  const found: DeliveryPosition[] = [];
  const start = page.before ?? startOf(untilMs);
  const days = await daysWithDeliveries(database, wabaId, {
    from: dayOf(filter.sinceMs - CLOCK_SPARE_MS),
    to: start.day,
  });
  let before = positionOn(start, days[0]);
  while (before !== null) {
    const limit = page.limit - found.length;
    const range = { before, sinceMs: filter.sinceMs, limit, rows: ROWS_PER_STEP };
    const step = await (wabaId === null
      ? stepOverAll(database, filter, range)
      : stepOver(database, wabaId, filter, range));
    found.push(...step.found);
    const last = found.at(-1);
    if (found.length >= page.limit && last !== undefined) return { found, next: last };
    const today = before.day;
    before =
      step.frontier ??
      positionOn(
        start,
        days.find((day) => day < today),
      );
    if (before !== null && performance.now() > deadlineMs) return { found, next: before };
  }
  return { found, next: null };
}

/**
 * One statement over one day of a WABA. It reads the newest rows of each endpoint that has some, along the index on
 * (waba_id, endpoint_id, created_at), and looks no further back than where the busiest of them was cut off. The
 * endpoints are found by skipping through the index, because deleted ones have deliveries too.
 */
async function stepOver(
  database: Database,
  wabaId: string,
  filter: DeliveryFilter,
  { before, sinceMs, limit, rows }: StepRange,
): Promise<Step> {
  const { conditions, bindings, isFiltered } = wanted(filter);
  const text = `
    with recursive endpoints (id) as (
      ${filter.endpointId === null ? ENDPOINTS_OF_DAY : 'select cast(:endpointId as bigint)'}
    ), scanned as materialized (
      select d.* from endpoints e cross join lateral (
        select id, created_at, endpoint_id, state, last_status_code, event_day, event_uuid from deliveries
         where day = :day and waba_id = :wabaId and endpoint_id = e.id
           and created_at <= ${timeOf('at')} and created_at >= ${timeOf('since')}
         order by created_at desc
         fetch first (greatest(cast(:limit as bigint), cast(:rows as bigint) / (select count(*) from endpoints))) rows with ties
      ) as d
    ), frontier as (
      select max(oldest) as at from (
        select min(created_at) as oldest from scanned group by endpoint_id
        having count(*) >= greatest(cast(:limit as bigint), cast(:rows as bigint) / (select count(*) from endpoints))) as f
    )
    select ${microsOf('f.at')} as frontier, m.id, m."atMicros" from frontier f left join lateral (
      select d.id, ${microsOf('d.created_at')} as "atMicros"
        from (select * from scanned
               where created_at >= coalesce(f.at, '-infinity') and (created_at, id) < (${timeOf('at')}, cast(:id as uuid))
               order by created_at desc, id desc offset 0) as d
       where ${conditions}
       order by d.created_at desc, d.id desc limit :limit) as m on true`;
  const { day, atMicros: at, id } = before;
  const place = { wabaId, day, at, id, since: microsOfMs(sinceMs) };
  const lines = { limit, rows: isFiltered ? rows : limit };
  const { found, frontier } = await stepRows(database, text, day, { ...place, ...lines, ...bindings });
  return { found, frontier: frontier === null ? null : { day, atMicros: frontier, id: LOWEST_ID } };
}

const ENDPOINTS_OF_DAY = `
      (select endpoint_id from deliveries where day = :day and waba_id = :wabaId order by endpoint_id limit 1)
      union all
      select next.id from endpoints e cross join lateral (
        select endpoint_id as id from deliveries where day = :day and waba_id = :wabaId and endpoint_id > e.id
         order by endpoint_id limit 1) as next`;

/** One statement over one day of all WABAs, along the primary key; ids sort by time. */
async function stepOverAll(
  database: Database,
  filter: DeliveryFilter,
  { before, sinceMs, limit, rows }: StepRange,
): Promise<Step> {
  const { conditions, bindings, isFiltered } = wanted(filter);
  const text = `
    with scanned as materialized (
      select id, created_at, endpoint_id, state, last_status_code, event_day, event_uuid from deliveries
       where day = :day and id < cast(:id as uuid) and id >= cast(:sinceId as uuid)
       order by id desc limit cast(:rows as bigint)
    ), frontier as (
      select case when count(*) >= cast(:rows as bigint) then min(cast(id as text)) end as id from scanned
    )
    select f.id as frontier, m.id, m."atMicros" from frontier f left join lateral (
      select d.id, ${microsOf('d.created_at')} as "atMicros"
        from (select * from scanned order by id desc offset 0) as d
       where ${conditions}
       order by d.id desc limit :limit) as m on true`;
  const place = { day: before.day, id: before.id, sinceId: lowestUuidAt(sinceMs) };
  const lines = { limit, rows: isFiltered || filter.endpointId !== null ? rows : limit };
  const { found, frontier } = await stepRows(database, text, before.day, { ...place, ...lines, ...bindings });
  return { found, frontier: frontier === null ? null : { ...before, id: frontier } };
}

/** Runs the statement of a step: the rows that fit, and where it was cut off. */
async function stepRows(
  database: Database,
  text: string,
  day: string,
  bindings: Record<string, Binding>,
): Promise<{ found: DeliveryPosition[]; frontier: string | null }> {
  type Row = { frontier: string | null; id: string | null; atMicros: string };
  const rows = await query<Row>(database, text, bindings);
  return {
    found: rows.flatMap(({ id, atMicros }) => (id === null ? [] : [{ day, atMicros, id }])),
    frontier: rows[0]?.frontier ?? null,
  };
}

/** What a filter asks of a scanned delivery `d`. `isFiltered`: rows may be passed over, whatever the endpoint. */
function wanted(filter: DeliveryFilter) {
  const own = deliveryConditions(filter);
  // Only responses that are no failure come here, and those are the last of their delivery.
  const { response } = filter;
  const ofResponse = response?.text.replaceAll('a.status_code', 'd.last_status_code') ?? 'true';
  return {
    conditions: `${own.text} and ${ofResponse}`,
    bindings: { ...own.bindings, ...response?.bindings },
    isFiltered: filter.state !== null || response !== null || filter.eventType !== null,
  };
}

function startOf(untilMs: number): DeliveryPosition {
  return {
    day: dayOf(untilMs + CLOCK_SPARE_MS),
    atMicros: microsOfMs(untilMs),
    id: lowestUuidAt(untilMs),
  };
}

/** Where to begin on a day: at `start` on its own day, behind the last of any other. */
function positionOn(start: DeliveryPosition, day: string | undefined): DeliveryPosition | null {
  if (day === undefined) return null;
  if (day === start.day) return start;
  const midnightMs = Date.parse(day) + DAY_MS;
  return { day, atMicros: microsOfMs(midnightMs + CLOCK_SPARE_MS), id: lowestUuidAt(midnightMs) };
}

/** The days on which there is anything, the newest first: one probe each, whose order keeps it to the index. */
async function daysWithDeliveries(
  database: Database,
  wabaId: string | null,
  { from, to }: { from: string; to: string },
): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `select k.day from (
       select cast(day as date) from generate_series(
         greatest(cast(:from as date), (select min(day) from deliveries)), cast(:to as date), interval '1 day') as day) as k
      cross join lateral (select 1 from deliveries where day = k.day
        ${wabaId === null ? '' : 'and waba_id = :wabaId order by endpoint_id'} limit 1) as any_delivery
      order by k.day desc`,
    { from, to, wabaId },
  );
}

function dayOf(atMs: number): string {
  return dayOfUuidV7(lowestUuidAt(atMs));
}

function microsOfMs(atMs: number): string {
  return String(Math.round(atMs) * 1_000);
}

function microsOf(column: string): string {
  return `cast(extract(epoch from ${column}) * 1000000 as bigint)`;
}

function timeOf(name: string): string {
  return `(timestamptz 'epoch' + cast(:${name} as bigint) * interval '1 microsecond')`;
}
