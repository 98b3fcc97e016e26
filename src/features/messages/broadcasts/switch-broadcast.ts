import { recordChange, SYSTEM } from '../../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { insertWorkflowTasks, moveTask, type TaskKind } from '../../../platform/temporal/workflow-tasks.ts';
import { cancelMessagesOf, releaseMessagesOf } from '../send/broadcast-messages.ts';
import {
  type BroadcastIds,
  type BroadcastRow,
  type BroadcastState,
  broadcastWorkflowId,
  countBroadcasts,
  lockBroadcast,
  lockBroadcastsOf,
  setBroadcastState,
} from './broadcast-store.ts';

export type BroadcastVerb = 'start' | 'pause' | 'resume' | 'cancel';

/** Paused ones keep their place among those that run. */
const MOST_RUNNING = 5;
const RUNNING: readonly BroadcastState[] = ['running', 'paused'];

const FROM: Record<BroadcastVerb, readonly BroadcastState[]> = {
  start: ['draft', 'scheduled', 'running'],
  pause: ['scheduled', 'running', 'paused'],
  resume: ['scheduled', 'running', 'paused'],
  cancel: ['draft', 'scheduled', 'running', 'paused', 'cancelled'],
};

const AUDITED_AS: Record<BroadcastVerb, string> = {
  start: 'broadcast.started',
  pause: 'broadcast.paused',
  resume: 'broadcast.resumed',
  cancel: 'broadcast.cancelled',
};

type Note = (trx: Transaction, change: { action: string; broadcast: BroadcastRow }) => Promise<void>;

/**
 * The row is what counts: API, commands and workflow all go through here. What was done already is done again without a change. Throws RequestError:
 * `unknown_broadcast`, `broadcast_finished`, `broadcast_not_started`, `broadcast_started`, `broadcast_empty`, `too_many_broadcasts`.
 */
export async function switchBroadcast(
  database: Database,
  ids: BroadcastIds,
  verb: BroadcastVerb,
  note: Note = async () => undefined,
): Promise<void> {
  await database.transaction(async (trx) => {
    if (verb === 'start') await lockBroadcastsOf(trx, ids.wabaId);
    const broadcast = await lockBroadcast(trx, ids);
    if (broadcast === null) throw unknownBroadcast(ids.broadcastId);
    if (!FROM[verb].includes(broadcast.state)) throw refusal(broadcast, verb);
    const state = await nextState(trx, broadcast, verb);
    if (state === broadcast.state) return;
    await setBroadcastState(trx, broadcast.id, { state });
    if (verb === 'resume') await releaseMessagesOf(trx, broadcast.id);
    if (verb === 'cancel') await cancelMessagesOf(trx, broadcast.id);
    await seeToWorkflow(trx, broadcast, state);
    await note(trx, { action: AUDITED_AS[verb], broadcast });
  });
}

async function nextState(
  trx: Transaction,
  broadcast: BroadcastRow,
  verb: BroadcastVerb,
): Promise<BroadcastState> {
  if (verb === 'pause') return 'paused';
  if (verb === 'cancel') return 'cancelled';
  if (broadcast.state !== (verb === 'start' ? 'draft' : 'paused')) return broadcast.state;
  if (verb === 'start' && broadcast.recipients === 0) {
    throw new RequestError('broadcast_empty', 'The broadcast has no recipients.');
  }
  if (isAhead(broadcast)) return 'scheduled';
  if (verb === 'start') {
    const running = await countBroadcasts(trx, broadcast.wabaId, RUNNING, MOST_RUNNING);
    if (running >= MOST_RUNNING) throw tooMany(`${MOST_RUNNING} running or paused broadcasts`);
  }
  return 'running';
}

export function tooMany(what: string): RequestError {
  return new RequestError('too_many_broadcasts', `The WABA has ${what} already.`);
}

function isAhead({ sendAt }: Pick<BroadcastRow, 'sendAt'>): boolean {
  return sendAt !== null && sendAt.getTime() > Date.now();
}

/** A scheduled one begins when its time has come, unless as many run as may. False: it has to wait. */
export async function beginScheduled(database: Database, ids: BroadcastIds): Promise<boolean> {
  return await database.transaction(async (trx) => {
    await lockBroadcastsOf(trx, ids.wabaId);
    const broadcast = await lockBroadcast(trx, ids);
    if (broadcast?.state !== 'scheduled') return true;
    if (isAhead(broadcast)) return false;
    const running = await countBroadcasts(trx, ids.wabaId, RUNNING, MOST_RUNNING);
    if (running >= MOST_RUNNING) return false;
    await setBroadcastState(trx, ids.broadcastId, { state: 'running' });
    return true;
  });
}

/**
 * It pauses itself; messages that have their turn meanwhile wait too. `of`: since when it ran as the reason came up, for one that was
 * resumed since goes on. False: it is not paused, for it has ended.
 */
export async function pauseItself(
  database: Database,
  { wabaId, broadcastId }: BroadcastIds,
  reason: string,
  of?: Pick<BroadcastRow, 'runningSince'>,
): Promise<boolean> {
  return await database.transaction(async (trx) => {
    const broadcast = await lockBroadcast(trx, { wabaId, broadcastId });
    if (broadcast?.state !== 'running') return broadcast?.state === 'paused';
    if (of !== undefined && of.runningSince?.getTime() !== broadcast.runningSince?.getTime()) return true;
    await setBroadcastState(trx, broadcastId, { state: 'paused', pausedBecause: reason });
    const about = { wabaId, target: broadcastName(broadcastId), detail: { reason } };
    await recordChange(trx, SYSTEM, { ...about, action: AUDITED_AS.pause });
    return true;
  });
}

export const SEND_BROADCAST: TaskKind = {
  workflowType: 'sendBroadcast',
  summary: 'send a broadcast',
};

/** A draft has none; one that waits for its time ends at once when it is cancelled. */
async function seeToWorkflow(
  trx: Transaction,
  broadcast: BroadcastRow,
  state: BroadcastState,
): Promise<void> {
  const { id: broadcastId, wabaId, sendAt } = broadcast;
  const workflowId = broadcastWorkflowId(broadcastId);
  if (state === 'cancelled') {
    if (broadcast.state !== 'draft') await moveTask(trx, workflowId, { startsAt: null, summary: null });
    return;
  }
  const argument = { wabaId, broadcastId };
  const task = { workflowId, kind: SEND_BROADCAST, wabaId, eventId: workflowId, argument };
  const isLater = state === 'scheduled' && sendAt !== null;
  await insertWorkflowTasks(trx, [{ ...task, startsAt: isLater ? sendAt : null }]);
}

function refusal({ id, state }: BroadcastRow, verb: BroadcastVerb): RequestError {
  if (state === 'draft')
    return new RequestError('broadcast_not_started', `Broadcast ${id} was not started: nothing to ${verb}.`);
  return state === 'paused'
    ? alreadyStarted()
    : new RequestError('broadcast_finished', `Broadcast ${id} is ${state}: nothing to ${verb}.`);
}

export function alreadyStarted(): RequestError {
  return new RequestError('broadcast_started', 'The broadcast was started: it cannot be changed any more.');
}

export function broadcastName(broadcastId: string): string {
  return `broadcast ${broadcastId}`;
}

export function unknownBroadcast(broadcastId: string): RequestError {
  return new RequestError('unknown_broadcast', `There is no broadcast ${broadcastId}.`);
}
