import type { Transaction } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';
import { dayOfUuidV7, lowestUuidAt, msOfUuidV7 } from '../platform/uuid-v7.ts';
import { type IdSpan, type ReplaySelection, selectedDeliveries, selectedUnsent } from './replay-selection.ts';
import { inLaneOrder, type ReplayedEvent } from './replay-sequence.ts';

const DAY_MS = 86_400_000;
const EVENTS_PER_STEP = 5_000;

/** One delivery of the selection, or an event that its endpoint never had. */
export type SelectedDelivery = ReplayedEvent & {
  /** Where it stands: the delivery's id, or the event's. */
  id: string;
  deliveryId: string | null;
  eventDay: string;
  eventUuid: string;
  obstacle: string | null;
};

export type ReplayPage = { deliveries: SelectedDelivery[]; nextId: string };

/**
 * Reads about `size` deliveries of one endpoint from `fromId` on, in their order, and where the next page begins.
 * A page ends between two milliseconds, because ids of one millisecond are in no order, and at midnight, so that
 * a statement looks into one partition.
 */
export async function readReplayPage(
  trx: Transaction,
  wabaId: string,
  selection: ReplaySelection,
  range: { endpointId: string; fromId: string; toId: string },
  size: number,
): Promise<ReplayPage> {
  const end = { ...range, toId: await endOfStep(trx, wabaId, selection, range) };
  const found = await readRange(trx, wabaId, selection, end, size + 1);
  const last = found[size];
  if (last === undefined) return { deliveries: inLaneOrder(found), nextId: end.toId };
  const lastMs = msOfUuidV7(last.id);
  const before = found.filter((delivery) => msOfUuidV7(delivery.id) < lastMs);
  if (before.length > 0) return { deliveries: inLaneOrder(before), nextId: lowestUuidAt(lastMs) };
  const nextId = lowestUuidAt(lastMs + 1);
  const ofOneMs = await readRange(trx, wabaId, selection, { ...range, toId: nextId }, null);
  return { deliveries: inLaneOrder(ofOneMs), nextId };
}

/**
 * A list is short, wherever its deliveries lie; a filter goes day by day, and by so many events where it is also about
 * those without a delivery: what an endpoint has had is passed over without being counted. Ids sort as text does.
 */
async function endOfStep(
  trx: Transaction,
  wabaId: string,
  selection: ReplaySelection,
  range: IdSpan,
): Promise<string> {
  if (selection.deliveryIds !== null) return range.toId;
  const midnight = lowestUuidAt((Math.floor(msOfUuidV7(range.fromId) / DAY_MS) + 1) * DAY_MS);
  const end = midnight < range.toId ? midnight : range.toId;
  if (selectedUnsent(wabaId, selection, { ...range, toId: end }) === null) return end;
  const [event] = await query<{ id: string }>(
    trx,
    `select id from events where waba_id = ? and day = cast(? as date) and id >= ?
      order by id offset ${EVENTS_PER_STEP} limit 1`,
    [wabaId, dayOfUuidV7(range.fromId), range.fromId],
  );
  if (event === undefined) return end;
  const eventMs = msOfUuidV7(event.id);
  const cut = lowestUuidAt(eventMs);
  const further = cut > range.fromId ? cut : lowestUuidAt(eventMs + 1);
  return further < end ? further : end;
}

async function readRange(
  trx: Transaction,
  wabaId: string,
  selection: ReplaySelection,
  { endpointId, ...span }: IdSpan & { endpointId: string },
  limit: number | null,
): Promise<SelectedDelivery[]> {
  const own = { ...selection, endpointId };
  const parts = [selectedDeliveries(wabaId, own, span), selectedUnsent(wabaId, own, span)];
  const found = parts.filter((part) => part !== null);
  const bindings = Object.assign({}, ...found.map((part) => part.bindings));
  return await query<SelectedDelivery>(
    trx,
    `select id, delivery_id as "deliveryId", event_day as "eventDay", event_uuid as "eventUuid", lane, sequence,
            conversation_id as "conversationId", obstacle
       from (${found.map(({ sql }) => `(${sql} order by day, id limit :limit)`).join(' union all ')}) as selected
      order by day, id limit :limit`,
    { ...bindings, limit },
  );
}
