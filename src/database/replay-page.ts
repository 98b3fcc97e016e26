import { inLaneOrder, type ReplayedEvent } from '../domain/replay-order.ts';
import type { Transaction } from './database.ts';
import {
  dayOfId,
  lowestUuidAt,
  msOfUuid,
  OBSTACLE,
  type ReplaySelection,
  SELECTED_FROM,
  selectionConditions,
} from './replay-selection.ts';
import { query } from './sql.ts';

const DAY_MS = 86_400_000;

/** One delivery of the selection. */
export type SelectedDelivery = ReplayedEvent & {
  deliveryId: string;
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
  const end = { ...range, toId: endOfStep(selection, range) };
  const found = await readRange(trx, wabaId, selection, end, size + 1);
  const last = found[size];
  if (last === undefined) return { deliveries: inLaneOrder(found), nextId: end.toId };
  const lastMs = msOfUuid(last.deliveryId);
  const before = found.filter((delivery) => msOfUuid(delivery.deliveryId) < lastMs);
  if (before.length > 0) return { deliveries: inLaneOrder(before), nextId: lowestUuidAt(lastMs) };
  const nextId = lowestUuidAt(lastMs + 1);
  const ofOneMs = await readRange(trx, wabaId, selection, { ...range, toId: nextId }, null);
  return { deliveries: inLaneOrder(ofOneMs), nextId };
}

/** A list is short, wherever its deliveries lie; a filter goes day by day. Ids sort as text does. */
function endOfStep(selection: ReplaySelection, range: { fromId: string; toId: string }): string {
  if (selection.deliveryIds !== null) return range.toId;
  const midnight = lowestUuidAt((Math.floor(msOfUuid(range.fromId) / DAY_MS) + 1) * DAY_MS);
  return midnight < range.toId ? midnight : range.toId;
}

async function readRange(
  trx: Transaction,
  wabaId: string,
  selection: ReplaySelection,
  { endpointId, fromId, toId }: { endpointId: string; fromId: string; toId: string },
  limit: number | null,
): Promise<SelectedDelivery[]> {
  const { where, bindings } = selectionConditions(wabaId, { ...selection, endpointId });
  const lastDay = dayOfId(lowestUuidAt(msOfUuid(toId) - 1));
  return await query<SelectedDelivery>(
    trx,
    `select d.id as "deliveryId", d.event_day as "eventDay", d.event_uuid as "eventUuid", ev.lane, ev.sequence,
            ev.conversation_id as "conversationId", ${OBSTACLE} as obstacle
       from ${SELECTED_FROM}
      where ${where} and d.day >= cast(:fromDay as date) and d.day <= cast(:lastDay as date)
        and d.id >= :fromId and d.id < :toId
      order by d.day, d.id limit :limit`,
    { ...bindings, fromDay: dayOfId(fromId), lastDay, fromId, toId, limit },
  );
}
