import { mediaReadyEventId } from '../../engine/deliveries/envelope.ts';
import { deliveryIdOfWorkflow } from '../../engine/queue/claim.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { query, queryColumn } from '../../platform/postgres/sql.ts';
import {
  batchUuidOf,
  dayOfUuidV7,
  deliveryUuidOf,
  eventUuidOf,
  isRowId,
  lowestUuidAt,
  msOfUuidV7,
} from '../../platform/public-ids.ts';
import { describeDeliveries, type ListedDelivery } from './deliveries.ts';
import {
  checkDeliveryFilter,
  type DeliveryFilter,
  deliveryConditions,
  type GivenDeliveryFilter,
} from './delivery-filter.ts';
import {
  type DeliveryPosition,
  type Scan,
  type ScanPage,
  SEARCH_MS,
  scanDeliveries,
} from './delivery-scan.ts';

const FAILED_PER_STEP = 600;
/** Pending deliveries that are sorted in one go; a larger backlog is met while going back in time. */
const MAX_OPEN = 1_000;
const DEFAULT_RANGE_MS = 7 * 86_400_000;

export type DeliverySearch = {
  deliveries: ListedDelivery[];
  next: DeliveryPosition | null;
  /** How far the search came, when it stopped before the page was full. */
  searchedTo: Date | null;
};

/**
 * The deliveries of a WABA (null: of all, for operators), the newest first. Without a time range it looks at seven
 * days, and with an id at all of them. A rare thing in a long log may take several pages: each says how far it came.
 * Throws RequestError `invalid_value`.
 */
export async function searchDeliveries(
  { database }: { database: Database },
  wabaId: string | null,
  given: GivenDeliveryFilter,
  page: ScanPage,
): Promise<DeliverySearch> {
  const { filter: asked, id } = await checkDeliveryFilter(given);
  const sinceMs = asked.sinceMs ?? (id === null ? (asked.untilMs ?? Date.now()) - DEFAULT_RANGE_MS : 0);
  const filter = { ...asked, sinceMs };
  const size = { ...page, limit: page.limit + 1 };
  const { found, next } =
    id === null
      ? await byFilter(database, wabaId, filter, size)
      : await among(database, wabaId, filter, size, await deliveriesNamed(database, wabaId, id));
  const shown = found.slice(0, page.limit);
  const deliveries = await describeDeliveries(database, shown);
  if (found.length > page.limit) return { deliveries, next: shown.at(-1) ?? null, searchedTo: null };
  return { deliveries, next, searchedTo: next === null ? null : timeOf(next) };
}

type Filter = DeliveryFilter & { sinceMs: number };

/** What failed is found by its attempts, what is open by the queue, everything else by going back in time. */
async function byFilter(
  database: Database,
  wabaId: string | null,
  filter: Filter,
  page: ScanPage,
): Promise<Scan> {
  const wantsFailure = filter.response?.isFailure ?? filter.state === 'failed';
  if (wantsFailure) return await byFailedAttempts(database, wabaId, filter, page);
  if (filter.state === 'pending') {
    const open = await openDeliveries(database, wabaId, MAX_OPEN);
    if (open !== null) return await among(database, wabaId, filter, page, open);
  }
  return await scanDeliveries(database, wabaId, filter, page);
}

/** Its candidates have an attempt with the wanted response, so only the rest of the filter is looked at. */
async function byFailedAttempts(
  database: Database,
  wabaId: string | null,
  filter: Filter,
  page: ScanPage,
): Promise<Scan> {
  const deadlineMs = performance.now() + SEARCH_MS;
  const found: DeliveryPosition[] = [];
  const withoutResponse = { ...filter, response: null };
  const until = filter.untilMs === null ? HIGHEST_ID : lowestUuidAt(filter.untilMs);
  const before = page.before?.id ?? HIGHEST_ID;
  let belowId: string | null = before < until ? before : until;
  for (;;) {
    const step = { belowId, limit: FAILED_PER_STEP };
    const candidates = await failedDeliveries(database, wabaId, filter, step);
    const left = page.limit - found.length;
    found.push(...(await fittingDeliveries(database, wabaId, withoutResponse, candidates.ids, left)));
    belowId = candidates.nextBelow;
    if (belowId === null || found.length >= page.limit) return { found, next: null };
    if (performance.now() > deadlineMs) return { found, next: positionOf(belowId) };
  }
}

/**
 * The id of a delivery, of an event or of a batch names one; everything else is tried as eventId and as Message_Id. A batch has the id of the
 * delivery that sends it.
 */
async function deliveriesNamed(database: Database, wabaId: string | null, id: string): Promise<string[]> {
  const delivery = deliveryUuidOf(id) ?? deliveryIdOfWorkflow(id);
  if (delivery !== null) return [delivery];
  const event = eventUuidOf(id) ?? batchUuidOf(id);
  const events = event === null ? await eventsNamed(database, wabaId, id) : [event];
  return await queryColumn<string>(
    database,
    `select id from deliveries where event_uuid = any (cast(:events as uuid[])) and ${owners(wabaId)}
     union
     select id from deliveries
      where day = cast(:day as date) and id = cast(:event as uuid) and batch_id = id and ${owners(wabaId)}
      order by id desc limit ${MAX_DELIVERIES}`,
    { events, wabaId, event, day: event === null ? null : dayOfUuidV7(event) },
  );
}

/** The newest events of a WABA (null: of all) that an eventId or an id of a message leads to. */
async function eventsNamed(database: Database, wabaId: string | null, id: string): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `select id from events where ${owners(wabaId)} and event_id = any (cast(:eventIds as text[]))
      order by id desc limit ${MAX_EVENTS}`,
    { eventIds: await eventIdsOf(database, wabaId, id), wabaId },
  );
}

/**
 * The eventIds that an id of a message leads to, whether ours (Message_Id) or upstream's: those of its events. Any other
 * text is taken as an eventId.
 */
export async function eventIdsOf(database: Database, wabaId: string | null, id: string): Promise<string[]> {
  const messages = await query<{ upstreamId: string | null }>(
    database,
    `select upstream_id as "upstreamId" from messages where id = cast(:messageId as bigint) and ${owners(wabaId)}`,
    { messageId: isRowId(id) ? id : null, wabaId },
  );
  const ids = [id, ...messages.flatMap(({ upstreamId }) => upstreamId ?? [])];
  return [...ids, ...ids.map(mediaReadyEventId)];
}

/** Goes through a list of deliveries that is known as a whole. */
async function among(
  database: Database,
  wabaId: string | null,
  filter: Filter,
  { before, limit }: ScanPage,
  candidates: readonly string[],
): Promise<Scan> {
  const since = lowestUuidAt(filter.sinceMs);
  const until = filter.untilMs === null ? null : lowestUuidAt(filter.untilMs);
  const ids = candidates.filter(
    (id) => (before === null || id < before.id) && id >= since && (until === null || id < until),
  );
  return { found: await fittingDeliveries(database, wabaId, filter, ids, limit), next: null };
}

function positionOf(id: string): DeliveryPosition {
  return { day: dayOfUuidV7(id), atMicros: String(msOfUuidV7(id) * 1_000), id };
}

function timeOf({ atMicros }: DeliveryPosition): Date {
  return new Date(Number(atMicros) / 1_000);
}

const MAX_EVENTS = 100;
const MAX_DELIVERIES = 200;

/** Every WABA is named for operators, so that the index on (waba_id, event_id) serves. */
function owners(wabaId: string | null): string {
  return wabaId === null ? 'waba_id = any (array(select waba_id from wabas))' : 'waba_id = :wabaId';
}

type Candidates = {
  ids: string[];
  /** There may be more below this id; null: these are all. */
  nextBelow: string | null;
};

const HIGHEST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Deliveries of a WABA (null: of all, for operators) with an attempt that failed, or that had this response. Found along
 * the index of failed attempts, WABA by WABA.
 */
async function failedDeliveries(
  database: Database,
  wabaId: string | null,
  { response: wanted, sinceMs }: DeliveryFilter & { sinceMs: number },
  { belowId, limit }: { belowId: string; limit: number },
): Promise<Candidates> {
  const rows = await query<{ id: string; fits: boolean }>(
    database,
    `select a.delivery_id as id, ${wanted === null ? 'true' : `coalesce(${wanted.text}, false)`} as fits
       from ${wabaId === null ? 'wabas w' : '(select cast(:wabaId as text) as waba_id) as w'}
      cross join lateral (
        select delivery_id, status_code, error_class from attempts
         where waba_id = w.waba_id and (status_code between 200 and 299) is not true
           and delivery_id < cast(:belowId as uuid) and delivery_id >= cast(:sinceId as uuid)
           and day >= cast(:sinceDay as date)
         order by delivery_id desc limit cast(:limit as bigint)) as a
      order by a.delivery_id desc limit cast(:limit as bigint)`,
    {
      wabaId,
      belowId,
      sinceId: lowestUuidAt(sinceMs),
      sinceDay: dayOfUuidV7(lowestUuidAt(sinceMs)),
      limit,
      ...wanted?.bindings,
    },
  );
  const ids = [...new Set(rows.filter(({ fits }) => fits).map(({ id }) => id))];
  const last = rows.at(-1);
  if (rows.length < limit || last === undefined) return { ids, nextBelow: null };
  // The last delivery may have been cut off between two attempts: it is looked at again.
  return { ids: ids.filter((id) => id !== last.id), nextBelow: idAbove(last.id) };
}

/** Deliveries that are open, by the queue; null when there are more than `limit`. */
async function openDeliveries(
  database: Database,
  wabaId: string | null,
  limit: number,
): Promise<string[] | null> {
  const own = wabaId === null ? '' : 'where waba_id = :wabaId';
  const ids = await queryColumn<string>(
    database,
    `select q.id from (select id from webhook_endpoints ${own}) as e
      cross join lateral (
        (select unnest(coalesce(batch, array[delivery_id])) as id from delivery_queue
          where endpoint_id = e.id and state <> 'queued'
          order by endpoint_id, lane limit cast(:limit as bigint))
        union all
        (select delivery_id from delivery_queue where endpoint_id = e.id and state = 'queued'
          order by endpoint_id, lane limit cast(:limit as bigint))) as q
      limit cast(:limit as bigint)`,
    { limit, wabaId },
  );
  return ids.length >= limit ? null : ids.sort().reverse();
}

/** Of these deliveries, in their order, those that fit the filter: at most `limit`. */
async function fittingDeliveries(
  database: Database,
  wabaId: string | null,
  filter: DeliveryFilter,
  ids: readonly string[],
  limit: number,
): Promise<DeliveryPosition[]> {
  if (ids.length === 0) return [];
  const own = deliveryConditions(filter);
  const { response } = filter;
  return await query<DeliveryPosition>(
    database,
    `select k.day, k.id, cast(extract(epoch from d.created_at) * 1000000 as bigint) as "atMicros"
       from unnest(cast(:days as date[]), cast(:ids as uuid[])) with ordinality as k (day, id, n)
      cross join lateral (select * from deliveries where day = k.day and id = k.id
                            ${wabaId === null ? '' : 'and waba_id = :wabaId'} offset 0) as d
      where ${own.text} ${
        response === null
          ? ''
          : `and exists (select 1 from attempts a where a.day >= k.day and a.delivery_id = d.id and ${response.text})`
      }
      order by k.n limit :limit`,
    {
      days: ids.map(dayOfUuidV7),
      ids,
      limit,
      wabaId,
      ...own.bindings,
      ...response?.bindings,
    },
  );
}

/** The id that follows, so that "below" takes this one in. */
function idAbove(id: string): string {
  const next = (BigInt(`0x${id.replaceAll('-', '')}`) + 1n).toString(16).padStart(32, '0');
  return next.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
