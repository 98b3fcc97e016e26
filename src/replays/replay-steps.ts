import {
  applyReplayState,
  openReplayDeliveries,
  queueReplayDeliveries,
  type ReplayDelivery,
} from '../deliveries/queue/replay-queue.ts';
import type { OrderScope } from '../endpoints/subscribers.ts';
import type { Database, Transaction } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';
import { finishTask, insertWorkflowTasks } from '../platform/temporal/workflow-tasks.ts';
import { dayOfUuidV7, uuidV7 } from '../platform/uuid-v7.ts';
import { readReplayPage, type SelectedDelivery } from './replay-page.ts';
import { replayLane } from './replay-sequence.ts';
import {
  lockReplay,
  type Replay,
  type ReplayState,
  replayWorkflowId,
  saveReplayProgress,
  setReplayState,
} from './replay-store.ts';

const PAGE_DELIVERIES = 500;

/** The replay as it is after a step, and the ids of the deliveries that the step queued. */
export type ReplayStep = { replay: Replay; queuedIds: string[] };

/**
 * Queues the next page of one endpoint, in one transaction with the place where the next one begins. Does nothing
 * when the replay is not running or the endpoint is through. Null: there is no such replay.
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
    const scope = await orderScopeOf(trx, replay.wabaId, place.id);
    const wanted = scope === null ? [] : page.deliveries.filter(({ obstacle }) => obstacle === null);
    const queued = wanted.map((selected) => again(replay.id, scope ?? 'event', selected));
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

/** The same event for the same endpoint as a delivery of its own. */
function again(replayId: string, scope: OrderScope, selected: SelectedDelivery): ReplayDelivery {
  const deliveryId = uuidV7(Date.now());
  return {
    deliveryDay: dayOfUuidV7(deliveryId),
    deliveryId,
    lane: replayLane(replayId, scope, selected),
    eventDay: selected.eventDay,
    eventUuid: selected.eventUuid,
    replayOf: selected.deliveryId,
  };
}

async function orderScopeOf(
  trx: Transaction,
  wabaId: string,
  endpointId: string,
): Promise<OrderScope | null> {
  const [row] = await query<{ orderScope: OrderScope }>(
    trx,
    'select order_scope as "orderScope" from webhook_endpoints where waba_id = ? and id = ?',
    [wabaId, endpointId],
  );
  return row?.orderScope ?? null;
}

const ALLOWED_FROM: Record<'paused' | 'running' | 'cancelled', readonly ReplayState[]> = {
  paused: ['running', 'paused', 'done'],
  running: ['paused', 'running'],
  cancelled: ['running', 'paused', 'cancelled', 'done'],
};

/** `refused`: it has ended. `before`: its state when the change was asked for. */
type ReplayChange = { replay: Replay; before: ReplayState; refused: boolean };

/**
 * Pauses, resumes or cancels a replay and what it has in the queue. The row is what counts: workflows and commands
 * both go through here. A replay that has queued everything can be paused or cancelled as long as some of it is open.
 * Null: there is no such replay.
 */
export async function changeReplay(
  database: Database,
  ids: { wabaId: string; replayId: string },
  state: 'paused' | 'running' | 'cancelled',
): Promise<ReplayChange | null> {
  return await database.transaction(async (trx) => {
    const replay = await lockReplay(trx, ids.wabaId, ids.replayId);
    if (replay === null) return null;
    const before = replay.state;
    const isOver = replay.state === 'done' && (await openReplayDeliveries(trx, replay)).length === 0;
    if (isOver || !ALLOWED_FROM[state].includes(replay.state)) return { replay, before, refused: true };
    if (replay.state !== state) await setReplayState(trx, replay.id, state);
    const changed = { ...replay, state };
    await applyReplayState(trx, changed);
    if (replay.state !== 'cancelled') await ensureWorkflow(trx, changed);
    return { replay: changed, before, refused: false };
  });
}

/** What the sweep had to leave alone, the workflow sees to; one that has ended is started again. */
export async function ensureWorkflow(trx: Transaction, replay: Pick<Replay, 'id' | 'wabaId'>): Promise<void> {
  const workflowId = replayWorkflowId(replay.id);
  const argument = { wabaId: replay.wabaId, replayId: replay.id };
  const task = {
    workflowId,
    workflowType: 'replayDeliveries' as const,
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
  return await database.transaction(async (trx) => {
    const replay = await lockReplay(trx, ids.wabaId, ids.replayId);
    if (replay === null) return null;
    await applyReplayState(trx, replay);
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
