import { findSubscribers } from '../../engine/deliveries/publish.ts';
import type { OrderScope } from '../../engine/endpoint/endpoint-settings.ts';
import {
  applyReplayState,
  openReplayDeliveries,
  queueReplayDeliveries,
  type ReplayDelivery,
} from '../../engine/queue/replay-queue.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query, queryColumn } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7, lowestUuidAt, msOfUuidV7, uuidV7 } from '../../platform/public-ids.ts';
import { finishTask, insertWorkflowTasks, type TaskKind } from '../../platform/temporal/workflow-tasks.ts';
import { type IdSpan, type ReplaySelection, selectedDeliveries, selectedUnsent } from './replay-selection.ts';
import {
  findReplay,
  lockReplay,
  type Replay,
  type ReplayState,
  replayWorkflowId,
  saveReplayProgress,
  setReplayState,
} from './replay-store.ts';

const PAGE_DELIVERIES = 500;

export type ReplayStep = { replay: Replay; queuedIds: string[] };

/**
 * One transaction with the place where the next page begins. Does nothing when the replay is not running or the endpoint is through. Null:
 * there is no such replay.
 */
export async function queueReplayPage(
  database: Database,
  ids: { wabaId: string; replayId: string; endpointId: string },
): Promise<ReplayStep | null> {
  return await database.transaction(async (trx) => {
    const replay = await lockReplay(trx, ids.wabaId, ids.replayId);
    if (replay === null) return null;
    const { cursor } = replay;
    const place = cursor.endpoints.find(({ id }) => id === ids.endpointId);
    if (replay.state !== 'running' || place === undefined) return { replay, queuedIds: [] };
    const range = { endpointId: place.id, fromId: place.nextId, toId: cursor.toId };
    const page = await readReplayPage(trx, replay.wabaId, replay.selection, range, PAGE_DELIVERIES);
    const subscribers = await findSubscribers(trx, [replay.wabaId]);
    const scope = subscribers.find(({ id }) => id === place.id)?.orderScope ?? null;
    const wanted = scope === null ? [] : page.deliveries.filter(({ obstacle }) => obstacle === null);
    const toSend = await withoutRepeats(trx, replay.id, wanted);
    const queued = toSend.map((selected) => again(replay.id, scope ?? 'event', selected));
    await queueReplayDeliveries(trx, replay, place.id, queued);
    const others = cursor.endpoints.filter(({ id }) => id !== place.id);
    const progress = {
      queued: replay.queued + queued.length,
      cursor: {
        toId: cursor.toId,
        endpoints: page.nextId < cursor.toId ? [...others, { id: place.id, nextId: page.nextId }] : others,
        skipped: cursor.skipped + page.deliveries.length - queued.length,
      },
    };
    await saveReplayProgress(trx, replay.id, progress);
    return { replay: { ...replay, ...progress }, queuedIds: queued.map(({ deliveryId }) => deliveryId) };
  });
}

function again(replayId: string, scope: OrderScope, selected: SelectedDelivery): ReplayDelivery {
  const deliveryId = uuidV7(Date.now());
  return {
    deliveryDay: dayOfUuidV7(deliveryId),
    deliveryId,
    lane: replayLane(replayId, scope, selected),
    eventDay: selected.sentWith === null ? selected.eventDay : dayOfUuidV7(selected.sentWith),
    eventUuid: selected.sentWith ?? selected.eventUuid,
    replayOf: selected.deliveryId,
  };
}

/** What was sent together is sent again together, and once by a replay, whichever parts of it are selected. */
async function withoutRepeats(
  trx: Transaction,
  replayId: string,
  selected: readonly SelectedDelivery[],
): Promise<SelectedDelivery[]> {
  const batches = [...new Set(selected.flatMap(({ sentWith }) => sentWith ?? []))];
  if (batches.length === 0) return [...selected];
  const seen = new Set(
    await queryColumn<string>(
      trx,
      'select event_uuid from deliveries where event_uuid = any (cast(:batches as uuid[])) and replay_id = :replayId',
      { batches, replayId },
    ),
  );
  return selected.filter(({ sentWith }) => {
    if (sentWith === null) return true;
    const isNew = !seen.has(sentWith);
    seen.add(sentWith);
    return isNew;
  });
}

const ALLOWED_FROM: Record<'paused' | 'running' | 'cancelled', readonly ReplayState[]> = {
  paused: ['running', 'paused', 'done'],
  running: ['paused', 'running'],
  cancelled: ['running', 'paused', 'cancelled', 'done'],
};

/** `refused`: it has ended. `before`: its state when the change was asked for. */
type ReplayChange = { replay: Replay; before: ReplayState; refused: boolean };

/**
 * Reaches what is queued too. The row is what counts: workflows and commands both go through here, and what is cut off after the row was
 * written, the workflow of the replay goes on with. A replay that has queued everything can be paused or cancelled as long as some of it is
 * open. `note` belongs to the transaction of the row. Null: there is no such replay.
 */
export async function changeReplay(
  database: Database,
  ids: { wabaId: string; replayId: string },
  state: 'paused' | 'running' | 'cancelled',
  note: (trx: Transaction, change: ReplayChange) => Promise<void> = async () => undefined,
): Promise<ReplayChange | null> {
  const change = await database.transaction(async (trx) => {
    const replay = await lockReplay(trx, ids.wabaId, ids.replayId);
    if (replay === null) return null;
    const before = replay.state;
    const isOver = replay.state === 'done' && (await openReplayDeliveries(trx, replay)).length === 0;
    if (isOver || !ALLOWED_FROM[state].includes(replay.state)) return { replay, before, refused: true };
    if (replay.state !== state) await setReplayState(trx, replay.id, state);
    const made = { replay: { ...replay, state }, before, refused: false };
    if (replay.state !== 'cancelled') await ensureWorkflow(trx, replay);
    await note(trx, made);
    return made;
  });
  if (change?.refused === false) await applyState(database, change.replay);
  return change;
}

async function applyState(database: Database, replay: Replay): Promise<void> {
  await applyReplayState(database, replay, (trx) => lockReplay(trx, replay.wabaId, replay.id));
}

export const REPLAY_DELIVERIES: TaskKind = {
  workflowType: 'replayDeliveries',
  summary: 'send deliveries again',
};

/** What the sweep had to leave alone, the workflow sees to; one that has ended is started again. */
export async function ensureWorkflow(trx: Transaction, replay: Pick<Replay, 'id' | 'wabaId'>): Promise<void> {
  const workflowId = replayWorkflowId(replay.id);
  const argument = { wabaId: replay.wabaId, replayId: replay.id };
  const task = {
    workflowId,
    kind: REPLAY_DELIVERIES,
    wabaId: replay.wabaId,
    eventId: workflowId,
  };
  await insertWorkflowTasks(trx, [{ ...task, argument }]);
}

/**
 * Repeats what the state asks of rows in the queue, and ends a running replay that has queued everything or a
 * cancelled one of which nothing is open any more. Null: there is no such replay.
 */
export async function settleReplay(
  database: Database,
  ids: { wabaId: string; replayId: string },
): Promise<{ replay: Replay; ended: boolean } | null> {
  const seen = await findReplay(database, ids.wabaId, ids.replayId);
  if (seen === null) return null;
  await applyState(database, seen);
  return await database.transaction(async (trx) => {
    const replay = await lockReplay(trx, ids.wabaId, ids.replayId);
    if (replay === null) return null;
    if (!(await isThrough(trx, replay))) return { replay, ended: false };
    if (replay.state === 'running') await setReplayState(trx, replay.id, 'done');
    await finishTask(trx, replayWorkflowId(replay.id));
    const state = replay.state === 'running' ? 'done' : replay.state;
    return { replay: { ...replay, state }, ended: true };
  });
}

async function isThrough(trx: Transaction, replay: Replay): Promise<boolean> {
  if (replay.state === 'done') return true;
  if (replay.state === 'cancelled') return (await openReplayDeliveries(trx, replay)).length === 0;
  if (replay.state === 'paused' || replay.cursor.endpoints.length > 0) return false;
  // After a pause, a row that was locked when it should have been released would wait for ever.
  return (await openReplayDeliveries(trx, replay)).every(({ released }) => released);
}

const DAY_MS = 86_400_000;
const EVENTS_PER_STEP = 5_000;

/** One delivery of the selection, or an event that its endpoint never had. */
type SelectedDelivery = ReplayedEvent & {
  id: string;
  deliveryId: string | null;
  /** The delivery that sent it with others. */
  sentWith: string | null;
  eventDay: string;
  eventUuid: string;
  obstacle: string | null;
};

type ReplayPage = { deliveries: SelectedDelivery[]; nextId: string };

/**
 * About `size` deliveries from `fromId` on, in their order, and where the next page begins. A page ends between two milliseconds, because
 * ids of one millisecond are in no order, and at midnight, so that a statement looks into one partition.
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
    `select id from events where waba_id = :wabaId and day = cast(:day as date) and id >= :fromId
      order by id offset ${EVENTS_PER_STEP} limit 1`,
    { wabaId, day: dayOfUuidV7(range.fromId), fromId: range.fromId },
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
    `select id, delivery_id as "deliveryId", batch_id as "sentWith", event_day as "eventDay", event_uuid as "eventUuid", lane, sequence,
            conversation_id as "conversationId", obstacle
       from (${found.map(({ sql }) => `(${sql} order by day, id limit :limit)`).join(' union all ')}) as selected
      order by day, id limit :limit`,
    { ...bindings, limit },
  );
}

type ReplayedEvent = {
  lane: string;
  sequence: string;
  conversationId: string | null;
};

/**
 * Apart from live lanes, one per key, conversation or endpoint as the endpoint's order scope says. Starts with `replay/<replayId>/`, with
 * which no lane of a live event can start.
 */
export function replayLane(
  replayId: string,
  scope: 'event' | 'conversation' | 'endpoint',
  event: Pick<ReplayedEvent, 'lane' | 'conversationId'>,
): string {
  const prefix = `replay/${replayId}/`;
  if (scope === 'endpoint') return `${prefix}endpoint`;
  if (scope === 'conversation' && event.conversationId !== null) {
    return `${prefix}conversation/${event.conversationId}`;
  }
  return prefix + event.lane;
}

/**
 * By sequence within each lane; everything else keeps its place. Ids of one millisecond say nothing about order, and clocks of two machines
 * differ.
 */
export function inLaneOrder<Event extends Pick<ReplayedEvent, 'lane' | 'sequence'>>(
  events: readonly Event[],
): Event[] {
  const placesOf = Map.groupBy(events.keys(), (place) => events[place]?.lane);
  const ordered = [...events];
  for (const places of placesOf.values()) {
    const ofLane = places.flatMap((place) => events[place] ?? []).sort(bySequence);
    for (const [index, event] of ofLane.entries()) ordered[places[index] ?? 0] = event;
  }
  return ordered;
}

function bySequence(a: { sequence: string }, b: { sequence: string }): number {
  const difference = BigInt(a.sequence) - BigInt(b.sequence);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}
