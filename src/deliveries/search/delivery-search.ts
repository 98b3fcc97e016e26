import type { Database } from '../../platform/postgres/database.ts';
import { deliveryUuidOf, eventUuidOf } from '../../platform/public-ids.ts';
import { dayOfUuidV7, lowestUuidAt, msOfUuidV7 } from '../../platform/uuid-v7.ts';
import { mediaReadyEventId } from '../envelope.ts';
import {
  type Candidates,
  failedDeliveries,
  fittingDeliveries,
  openDeliveries,
} from '../log/delivery-candidates.ts';
import { type DeliveryFilter, isFailedAnswer } from '../log/delivery-filter.ts';
import { deliveriesOfEvents, upstreamIdOf } from '../log/delivery-lookup.ts';
import { describeDeliveries, type ListedDelivery } from '../log/delivery-rows.ts';
import { type DeliveryPosition, type Scan, scanDeliveries } from '../log/delivery-scan.ts';
import { checkDeliveryFilter, type GivenDeliveryFilter } from './delivery-input.ts';

/** How long one page may look for what a filter wants, before it says how far it came. */
const SEARCH_MS = 15;
const ROWS_PER_STEP = 4_000;
const FAILED_PER_STEP = 600;
/** Open deliveries that are sorted in one go; a larger backlog is met while going back in time. */
const MAX_OPEN = 1_000;
const DEFAULT_RANGE_MS = 7 * 86_400_000;
const MESSAGE_ID = /^[1-9]\d{0,17}$/;

export type DeliverySearch = {
  deliveries: ListedDelivery[];
  /** Where the next page begins; null: there is none. */
  next: DeliveryPosition | null;
  /** How far the search came, when it stopped before the page was full. */
  searchedTo: Date | null;
};

type Page = { before: DeliveryPosition | null; limit: number };

/**
 * The deliveries of a WABA (null: of all, for operators), the newest first. Without a time range it looks at seven
 * days, and with an id at all of them. A rare thing in a long log may take several pages: each says how far it came.
 * Throws AccountError `invalid_value`.
 */
export async function searchDeliveries(
  { database }: { database: Database },
  wabaId: string | null,
  given: GivenDeliveryFilter,
  page: Page,
): Promise<DeliverySearch> {
  const { filter: asked, id } = await checkDeliveryFilter(given);
  const sinceMs = asked.sinceMs ?? (id === null ? (asked.untilMs ?? Date.now()) - DEFAULT_RANGE_MS : 0);
  const filter = { ...asked, sinceMs };
  const size = { ...page, limit: page.limit + 1 };
  const { found, next } =
    id === null
      ? await byFilter(database, wabaId, filter, size)
      : await byId(database, wabaId, filter, size, id);
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
  page: Page,
): Promise<Scan> {
  const wantsFailure = filter.answer === null ? filter.state === 'failed' : isFailedAnswer(filter.answer);
  if (wantsFailure) return await byFailedAttempts(database, wabaId, filter, page);
  if (filter.state === 'pending') {
    const open = await openDeliveries(database, wabaId, MAX_OPEN);
    if (open !== null) return await among(database, wabaId, filter, page, open);
  }
  const deadlineMs = performance.now() + SEARCH_MS;
  return await scanDeliveries(database, wabaId, filter, { ...page, rowsPerStep: ROWS_PER_STEP, deadlineMs });
}

/** Its candidates have an attempt that was answered as asked, so only the rest of the filter is looked at. */
async function byFailedAttempts(
  database: Database,
  wabaId: string | null,
  filter: Filter,
  page: Page,
): Promise<Scan> {
  const deadlineMs = performance.now() + SEARCH_MS;
  const found: DeliveryPosition[] = [];
  const answered = { ...filter, answer: null };
  let belowId = page.before?.id ?? null;
  if (filter.untilMs !== null) belowId = lower(belowId, lowestUuidAt(filter.untilMs));
  for (;;) {
    const step = { belowId, limit: FAILED_PER_STEP };
    const candidates = await failedDeliveries(database, wabaId, filter, step);
    const left = page.limit - found.length;
    found.push(...(await fittingDeliveries(database, wabaId, answered, candidates.ids, left)));
    belowId = candidates.nextBelow;
    if (belowId === null || found.length >= page.limit) return { found, next: null };
    if (performance.now() > deadlineMs) return { found, next: positionOf(belowId) };
  }
}

async function byId(
  database: Database,
  wabaId: string | null,
  filter: Filter,
  page: Page,
  id: string,
): Promise<Scan> {
  return await among(database, wabaId, filter, page, {
    ids: await deliveriesNamed(database, wabaId, id),
    nextBelow: null,
  });
}

/** The id of a delivery or of an event names one; everything else is tried as eventId and as Message_Id. */
async function deliveriesNamed(database: Database, wabaId: string | null, id: string): Promise<string[]> {
  const delivery = deliveryUuidOf(id);
  if (delivery !== null) return [delivery];
  const event = eventUuidOf(id);
  if (event !== null) {
    const eventKeys = [{ id: event, day: dayOfUuidV7(event) }];
    return await deliveriesOfEvents(database, wabaId, { eventIds: [], eventKeys });
  }
  const upstreamId = MESSAGE_ID.test(id) ? await upstreamIdOf(database, wabaId, id) : null;
  const ids = upstreamId === null ? [id] : [id, upstreamId];
  const eventIds = [...ids, ...ids.map(mediaReadyEventId)];
  return await deliveriesOfEvents(database, wabaId, { eventIds, eventKeys: [] });
}

/** Goes through a list of deliveries that is known as a whole. */
async function among(
  database: Database,
  wabaId: string | null,
  filter: Filter,
  { before, limit }: Page,
  candidates: Candidates,
): Promise<Scan> {
  const since = lowestUuidAt(filter.sinceMs);
  const until = filter.untilMs === null ? null : lowestUuidAt(filter.untilMs);
  const ids = candidates.ids.filter(
    (id) => (before === null || id < before.id) && id >= since && (until === null || id < until),
  );
  return { found: await fittingDeliveries(database, wabaId, filter, ids, limit), next: null };
}

function lower(id: string | null, other: string): string {
  return id === null || other < id ? other : id;
}

function positionOf(id: string): DeliveryPosition {
  return { day: dayOfUuidV7(id), atMicros: String(msOfUuidV7(id) * 1_000), id };
}

function timeOf({ atMicros }: DeliveryPosition): Date {
  return new Date(Number(atMicros) / 1_000);
}
