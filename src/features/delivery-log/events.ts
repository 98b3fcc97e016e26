import { PUBLISHING_LOCK } from '../../engine/queue/publishing-locks.ts';
import { type EventType, includesType, type SentEventType, typeIsWanted } from '../../platform/event-type.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { LOCKS_MAX_AGE_MS, recentRead } from '../../platform/postgres/recent-read.ts';
import { query, queryColumn, queryOne, queryOnly, queryValue } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7, lowestUuidAt, msOfUuidV7 } from '../../platform/public-ids.ts';
import { type DeliveryState, summarizeDeliveries } from './deliveries.ts';

/** Which events to list; null means no restriction. Times are Unix time in ms, `untilMs` is exclusive. */
export type EventFilter = {
  /** Null: the six events of the product spec. */
  eventTypes: readonly EventType[] | null;
  eventId: string | null;
  phoneNumberId: string | null;
  /** Events in this state at one endpoint at least. */
  deliveryState: DeliveryState | null;
  sinceMs: number | null;
  untilMs: number | null;
};

export type ListedEvent = {
  id: string;
  day: string;
  eventType: SentEventType;
  eventId: string;
  phoneNumberId: string | null;
  sequence: string;
  createdAt: Date;
  /** Null while the event waits to be released (an order for its catalog). */
  occurredAt: Date | null;
  sizeBytes: number;
};

export type EventPage = {
  events: ListedEvent[];
  hasMore: boolean;
  /** Where the next page begins: the last id that was looked at; null when there was none. */
  position: string | null;
};

type Walk = { order: 'asc' | 'desc'; afterId: string | null; limit: number };

/** What one request reads at most: rows that a filter passes over, and bytes of bodies. */
const MAX_SCANNED = 10_000;
const BATCH = 500;
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

const DAY_MS = 86_400_000;

/**
 * Up to `limit` events of a WABA in the order of their ids, which is that of time, from behind `afterId` on. Goes
 * day by day, so that each statement looks into one partition. A page may hold fewer although there are more: when
 * a filter passes over much, or bodies are large.
 */
export async function listEvents(
  database: Database,
  wabaId: string,
  filter: EventFilter,
  walk: Walk,
): Promise<EventPage> {
  const range = await rangeOf(database, wabaId, filter, walk);
  const page = makePage(walk);
  const isFiltered = filter.eventTypes ?? filter.phoneNumberId ?? filter.deliveryState;
  const batch = isFiltered === null ? walk.limit + 1 : BATCH;
  for (const day of daysOf(range, walk.order)) {
    for (let rest = range; ; ) {
      const rows = await readDay(database, wabaId, { day, ...rest, order: walk.order, limit: batch }, filter);
      const wanted = new Set(await matching(database, wabaId, rows, filter));
      for (const row of rows) if (page.isFull(row, wanted.has(row))) return page.cut();
      const last = rows.at(-1);
      if (last === undefined || rows.length < batch) break;
      rest = walk.order === 'asc' ? { ...rest, afterId: last.id } : { ...rest, beforeId: last.id };
    }
  }
  return page.end();
}

/** Collects rows until a page is full; `position` trails the last row that was considered. */
function makePage({ afterId, limit }: Walk) {
  const events: ListedEvent[] = [];
  let position = afterId;
  let scanned = 0;
  let bytes = 0;
  return {
    isFull(row: ListedEvent, isWanted: boolean): boolean {
      const isTooLarge = events.length > 0 && bytes + row.sizeBytes > MAX_PAGE_BYTES;
      if (scanned === MAX_SCANNED || (isWanted && (events.length === limit || isTooLarge))) return true;
      scanned += 1;
      position = row.id;
      if (!isWanted) return false;
      bytes += row.sizeBytes;
      events.push(row);
      return false;
    },
    cut: (): EventPage => ({ events, hasMore: true, position }),
    end: (): EventPage => ({ events, hasMore: false, position }),
  };
}

/** Ids between which the walk goes, both exclusive. */
type Range = { afterId: string; beforeId: string };

async function rangeOf(
  database: Database,
  wabaId: string,
  { sinceMs, untilMs }: EventFilter,
  { order, afterId }: Walk,
): Promise<Range> {
  const isFromStart = order === 'desc' || afterId === null;
  const oldestMs = isFromStart ? await oldestEventMs(database, wabaId) : 0;
  const latestMs = Date.now() + DAY_MS;
  const low = lowestUuidAt(Math.max(sinceMs ?? 0, oldestMs));
  const high = lowestUuidAt(Math.min(untilMs ?? latestMs, latestMs));
  if (afterId === null) return { afterId: low, beforeId: high };
  return order === 'asc'
    ? { afterId: afterId > low ? afterId : low, beforeId: high }
    : { afterId: low, beforeId: afterId < high ? afterId : high };
}

/** One probe of the index per day. */
async function oldestEventMs(database: Database, wabaId: string): Promise<number> {
  const id = await queryValue<string>(
    database,
    'select id from events where waba_id = :wabaId order by id limit 1',
    { wabaId },
  );
  return id === null ? Date.now() : msOfUuidV7(id);
}

function daysOf({ afterId, beforeId }: Range, order: 'asc' | 'desc'): string[] {
  const days: string[] = [];
  for (let atMs = Date.parse(dayOfUuidV7(afterId)); atMs < msOfUuidV7(beforeId); atMs += DAY_MS) {
    days.push(new Date(atMs).toISOString().slice(0, 10));
  }
  return order === 'asc' ? days : days.reverse();
}

const EVENTS = `select id, day, event_type as "eventType", event_id as "eventId", phone_number_id as "phoneNumberId",
            sequence, created_at as "createdAt", occurred_at as "occurredAt",
            coalesce(octet_length(body), 0) as "sizeBytes" from events`;

async function readDay(
  database: Database,
  wabaId: string,
  page: Range & { day: string; order: 'asc' | 'desc'; limit: number },
  { eventId, eventTypes }: EventFilter,
): Promise<ListedEvent[]> {
  const direction = page.order === 'asc' ? 'asc' : 'desc';
  const { day, afterId, beforeId, limit } = page;
  return await query<ListedEvent>(
    database,
    `${EVENTS}
      where day = :day and waba_id = :wabaId and id > :afterId and id < :beforeId
            ${eventId === null ? '' : 'and event_id = :eventId'}
            ${eventTypes === null ? `and ${typeIsWanted('event_type', 'cast(null as text[])')}` : ''}
      order by id ${direction} limit :limit`,
    { wabaId, day, afterId, beforeId, limit, eventId },
  );
}

async function matching(
  database: Database,
  wabaId: string,
  rows: readonly ListedEvent[],
  { eventTypes, phoneNumberId, deliveryState }: EventFilter,
): Promise<readonly ListedEvent[]> {
  const fitting = rows.filter(
    (row) =>
      includesType(eventTypes, row.eventType) &&
      (phoneNumberId === null || row.phoneNumberId === phoneNumberId),
  );
  if (deliveryState === null) return fitting;
  const summaries = await summarizeDeliveries(database, wabaId, fitting);
  return fitting.filter((row) => (summaries.get(row.id)?.[deliveryState] ?? 0) > 0);
}

export async function findEvent(
  database: Database,
  wabaId: string,
  eventUuid: string,
): Promise<ListedEvent | null> {
  return await queryOne<ListedEvent>(
    database,
    `${EVENTS} where day = cast(:day as date) and id = :eventUuid and waba_id = :wabaId`,
    { wabaId, eventUuid, day: dayOfUuidV7(eventUuid) },
  );
}

/** The bodies of these events of a WABA as they are sent, by id; absent: not released yet. */
export async function readEventBodies(
  database: Database,
  wabaId: string,
  events: readonly { id: string; day: string }[],
): Promise<Map<string, string>> {
  const bodies = new Map<string, string>();
  // One day at a time: a constant day is one partition.
  for (const [day, ofDay] of Map.groupBy(events, (event) => event.day)) {
    const rows = await query<{ id: string; body: Buffer }>(
      database,
      `select id, body from events
        where day = cast(:day as date) and id = any (cast(:ids as uuid[])) and waba_id = :wabaId and body is not null`,
      { wabaId, day, ids: ofDay.map(({ id }) => id) },
    );
    for (const { id, body } of rows) bodies.set(id, body.toString('utf8'));
  }
  return bodies;
}

/** How far the clocks of our machines may be apart, in ms. */
const CLOCK_SPARE_MS = 2_000;

/** How long an event that is not released holds up those behind it, in ms. */
const MAX_WAIT_FOR_RELEASE_MS = 60_000;

/** For a publisher whose start is hidden from us: no statement takes longer. */
const MAX_TRANSACTION_SECONDS = 60;

/**
 * Unix time in ms before which no event of a WABA will still appear: transactions end in another order than that of
 * the ids they drew. An event that waits to be released holds the time back too, for a minute.
 * To be read before the events: that statement then sees what ended meanwhile.
 */
export async function publishingHorizonMs(database: Database, wabaId: string): Promise<number> {
  // What a publisher left unreleased is seen behind its end, so it is looked for behind the locks.
  const oldestStartMs = await oldestPublisherMs(database);
  const unreleased = await queryColumn<string>(
    database,
    `select id from events
      where waba_id = :wabaId and body is null and id > cast(:oldestUnreleased as uuid)
      order by id limit 1`,
    { wabaId, oldestUnreleased: lowestUuidAt(Date.now() - MAX_WAIT_FOR_RELEASE_MS) },
  );
  const settledMs = Math.floor(oldestStartMs) - CLOCK_SPARE_MS;
  return Math.min(settledMs, ...unreleased.map(msOfUuidV7));
}

/**
 * When the oldest transaction began that may still publish, or the time now. A publisher holds the publishing lock, or
 * one on the table, from before it draws ids.
 */
const oldestPublisherMs = recentRead(LOCKS_MAX_AGE_MS, async (database) => {
  const row = await queryOnly<{ atMs: number }>(
    database,
    `select (extract(epoch from least(clock_timestamp(), min(coalesce(a.xact_start, clock_timestamp()
               - :maxSeconds * interval '1 second')))) * 1000)::float8 as "atMs"
       from pg_locks l left join pg_stat_activity a on a.pid = l.pid
      where l.database = (select oid from pg_database where datname = current_database())
        and (l.locktype = 'advisory' and l.classid = 0 and l.objid = cast(:lock as oid) and l.objsubid = 1
             or l.locktype = 'relation' and l.mode = 'RowExclusiveLock'
                and l.relation = cast(cast('events' as regclass) as oid))`,
    { lock: PUBLISHING_LOCK, maxSeconds: MAX_TRANSACTION_SECONDS },
  );
  return row.atMs;
});
