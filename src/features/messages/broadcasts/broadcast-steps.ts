import type { Database } from '../../../platform/postgres/database.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { finishTask } from '../../../platform/temporal/workflow-tasks.ts';
import { cancelMessagesOf, countOpenOf, takeOpenOf } from '../send/broadcast-messages.ts';
import { type Pass, type PassTools, paceOfPass, sendInPass } from '../send/send-pass.ts';
import { endOfNextPart, isUnderWay, nextPending } from './broadcast-recipients.ts';
import {
  type Broadcast,
  type BroadcastIds,
  broadcastWorkflowId,
  findBroadcast,
  lockBroadcast,
  setBroadcastState,
} from './broadcast-store.ts';
import { reasonToPause } from './reason-to-pause.ts';
import { sendToRecipients } from './send-to-recipients.ts';
import { beginScheduled, pauseItself, switchBroadcast } from './switch-broadcast.ts';

/**
 * `waitMs`: when to look again; null: it does not run any more, or the part is through. `nextUpTo`: the last recipient of the next part; null: there
 * is none.
 */
export type BroadcastStep = { broadcast: Broadcast; waitMs: number | null; nextUpTo: string | null };

const LOOK_AGAIN_MS = 1_000;
const FULL_LOOK_AGAIN_MS = 10_000;
/** For the last attempts, which may be retries: to look for them goes through all recipients. */
const LAST_LOOK_AGAIN_MS = 5_000;
/** A restore to an earlier moment leaves up to this share of the recipients without a message: which of them have one is not known then. */
const PARTS = 200;
const LEAST_PART = 100;

/**
 * Sends the next recipients of a part their messages, as many as leave soon. Some recipients at a time are a transaction, so a repetition goes on behind them.
 * `upTo`: the last recipient of the part; null: there is no part yet. Null: there is no such broadcast.
 */
export async function stepBroadcast(
  tools: PassTools,
  ids: BroadcastIds,
  { upTo, ...pass }: { upTo: string | null } & Pass,
): Promise<BroadcastStep | null> {
  const { database } = tools;
  const found = await findBroadcast(database, ids);
  const wasScheduled = found?.state === 'scheduled';
  if (wasScheduled && !(await beginScheduled(database, ids)))
    return { broadcast: found, waitMs: FULL_LOOK_AGAIN_MS, nextUpTo: null };
  const broadcast = wasScheduled ? await findBroadcast(database, ids) : found;
  if (broadcast === null) return null;
  if (broadcast.state !== 'running') return { broadcast, waitMs: null, nextUpTo: null };
  const reason = await reasonToPause(database, broadcast);
  if (reason !== null) {
    await pauseItself(database, ids, reason, broadcast);
    return await stopped(database, ids);
  }
  const open = await countOpenOf(database, broadcast.id);
  const { perSecond, size } = await paceOfPass(tools, broadcast);
  const room = size - open;
  const left = open === 0 ? [] : await takeOpenOf(database, broadcast.id, size);
  const page = upTo === null || room <= 0 ? [] : await nextPending(database, broadcast.id, room, upTo);
  if (left.length + page.length > 0) {
    const sends = { ...pass, perSecond };
    const former = await sendInPass(tools, broadcast, left, (queued) => queued, sends);
    const end = former === 'through' ? await sendToRecipients(tools, broadcast, page, sends) : former;
    return { broadcast, waitMs: end === 'waits' ? LOOK_AGAIN_MS : 0, nextUpTo: null };
  }
  if (room <= 0) return { broadcast, waitMs: LOOK_AGAIN_MS, nextUpTo: null };
  const part = Math.max(LEAST_PART, Math.ceil(broadcast.recipients / PARTS));
  const nextUpTo = await endOfNextPart(database, broadcast.id, part);
  if (nextUpTo !== null) return { broadcast, waitMs: null, nextUpTo };
  if (open > 0) return { broadcast, waitMs: LOOK_AGAIN_MS, nextUpTo };
  if (await isUnderWay(database, broadcast.id)) return { broadcast, waitMs: LAST_LOOK_AGAIN_MS, nextUpTo };
  return await endBroadcast(database, ids);
}

/** How it is now that it does not run any more. */
async function stopped(database: Database, ids: BroadcastIds): Promise<BroadcastStep | null> {
  const broadcast = await findBroadcast(database, ids);
  return broadcast === null ? null : { broadcast, waitMs: null, nextUpTo: null };
}

/** Every recipient has had its turn: what upstream still reports of them changes the counts only. */
async function endBroadcast(database: Database, ids: BroadcastIds): Promise<BroadcastStep | null> {
  await database.transaction(async (trx) => {
    const broadcast = await lockBroadcast(trx, ids);
    if (broadcast?.state !== 'running') return;
    await setBroadcastState(trx, ids.broadcastId, { state: 'done' });
    await finishTask(trx, broadcastWorkflowId(ids.broadcastId));
  });
  return await stopped(database, ids);
}

/** Cancels it and what of it has not begun to be sent, and ends its task. Null: there is no such broadcast. */
export async function endCancelled(database: Database, ids: BroadcastIds): Promise<Broadcast | null> {
  await switchIfItMay(database, ids, 'cancel');
  await database.transaction(async (trx) => {
    // A recipient that had its turn during the change has a message by now.
    await cancelMessagesOf(trx, ids.broadcastId);
    await finishTask(trx, broadcastWorkflowId(ids.broadcastId));
  });
  return await findBroadcast(database, ids);
}

/** One that has ended stays as it is. */
export async function switchIfItMay(
  database: Database,
  ids: BroadcastIds,
  verb: 'pause' | 'resume' | 'cancel',
): Promise<void> {
  try {
    await switchBroadcast(database, ids, verb);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
  }
}
