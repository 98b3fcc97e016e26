import type { Database } from '../../../platform/postgres/database.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { finishTask } from '../../../platform/temporal/workflow-tasks.ts';
import { listNumberPaces, paceOfNumber } from '../../accounts/number-pace.ts';
import { cancelMessagesOf, countOpenOf } from '../send/broadcast-messages.ts';
import { pathFor } from '../send/marketing-path.ts';
import { RecipientOptedOut } from '../send/opted-out.ts';
import type { SendPath } from '../send/outbound-messages.ts';
import { queueMessage } from '../send/queue-message.ts';
import { SHARE } from '../send/scheduled-turn.ts';
import { lookAtTemplate } from '../send/sent-template.ts';
import { messageTo } from './broadcast-message.ts';
import { isUnderWay, nextPending, type PendingRecipient, suppressRecipient } from './broadcast-recipients.ts';
import {
  type Broadcast,
  type BroadcastIds,
  broadcastWorkflowId,
  findBroadcast,
  lockBroadcast,
  setBroadcastState,
} from './broadcast-store.ts';
import { reasonToPause } from './reason-to-pause.ts';
import { beginScheduled, pauseItself, switchBroadcast } from './switch-broadcast.ts';

/** `waitMs`: when to look again; null: it does not run any more. */
export type BroadcastStep = { broadcast: Broadcast; waitMs: number | null };

/** So much of what leaves next has its messages: a pause or a new opt-out reaches the others before they have any. */
const AHEAD_SECONDS = 5;
const LEAST_AHEAD = 10;
const PAGE = 500;
const AT_A_TIME = 4;
const LOOK_AGAIN_MS = 1_000;
const FULL_LOOK_AGAIN_MS = 10_000;
/** For the last attempts, which may be retries: to look for them goes through all recipients. */
const LAST_LOOK_AGAIN_MS = 5_000;

/** No API key sends them: the key that started the broadcast was judged then. */
const SENDER = { keyId: null, maxMessagesPerDay: null, recipients: 'any' } as const;

/**
 * Gives the next recipients their messages, as many as leave soon. Every recipient is a transaction, so a repetition goes on behind it. Null: there is
 * no such broadcast.
 */
export async function stepBroadcast(
  database: Database,
  ids: BroadcastIds,
  { onMessage }: { onMessage: () => void },
): Promise<BroadcastStep | null> {
  const found = await findBroadcast(database, ids);
  const wasScheduled = found?.state === 'scheduled';
  if (wasScheduled && !(await beginScheduled(database, ids)))
    return { broadcast: found, waitMs: FULL_LOOK_AGAIN_MS };
  const broadcast = wasScheduled ? await findBroadcast(database, ids) : found;
  if (broadcast === null) return null;
  if (broadcast.state !== 'running') return { broadcast, waitMs: null };
  const reason = await reasonToPause(database, broadcast);
  if (reason !== null) {
    await pauseItself(database, ids, reason, broadcast);
    return await looked(database, ids, null);
  }
  const open = await countOpenOf(database, broadcast.id);
  const room = Math.min(PAGE, (await mostAhead(database, broadcast)) - open);
  const page = room > 0 ? await nextPending(database, broadcast.id, room) : [];
  await queuePage(database, broadcast, page, onMessage);
  if (open > 0 || page.length > 0 || broadcast.pending > 0) return await looked(database, ids, LOOK_AGAIN_MS);
  if (await isUnderWay(database, broadcast.id)) return { broadcast, waitMs: LAST_LOOK_AGAIN_MS };
  return await endBroadcast(database, ids);
}

async function looked(
  database: Database,
  ids: BroadcastIds,
  waitMs: number | null,
): Promise<BroadcastStep | null> {
  const broadcast = await findBroadcast(database, ids);
  return broadcast === null ? null : { broadcast, waitMs };
}

async function mostAhead(
  database: Database,
  { wabaId, phoneNumberId }: Pick<Broadcast, 'wabaId' | 'phoneNumberId'>,
): Promise<number> {
  const numbers = await listNumberPaces(database, wabaId);
  const own = numbers.find((one) => one.phoneNumberId === phoneNumberId);
  const perSecond = paceOfNumber(own ?? { messagesPerSecond: null, upstreamPerSecond: null }, null);
  return Math.max(LEAST_AHEAD, Math.ceil(perSecond * SHARE * AHEAD_SECONDS));
}

async function queuePage(
  database: Database,
  broadcast: Broadcast,
  page: readonly PendingRecipient[],
  onMessage: () => void,
): Promise<void> {
  const [first] = page;
  if (first === undefined) return;
  // A category that is not known is looked up at the message's turn.
  const { category = null } = await lookAtTemplate(database, broadcast.wabaId, messageTo(broadcast, first));
  const upstreamPath = await pathFor(database, broadcast.phoneNumberId, category);
  for (let at = 0; at < page.length; at += AT_A_TIME) {
    const some = page.slice(at, at + AT_A_TIME);
    await Promise.all(some.map((one) => queueOne(database, broadcast, one, { category, upstreamPath })));
    onMessage();
  }
}

async function queueOne(
  database: Database,
  broadcast: Broadcast,
  recipient: PendingRecipient,
  how: { category: string | null; upstreamPath: SendPath },
): Promise<void> {
  const key = { broadcastId: broadcast.id, recipientId: recipient.id };
  try {
    const account = { ...SENDER, wabaId: broadcast.wabaId };
    await queueMessage(database, account, messageTo(broadcast, recipient), {
      ...how,
      key: null,
      recipient: key,
    });
  } catch (error) {
    if (!(error instanceof RecipientOptedOut)) throw error;
    await suppressRecipient(database, key);
  }
}

/** Every recipient has had its turn: what upstream still reports of them changes the counts only. */
async function endBroadcast(database: Database, ids: BroadcastIds): Promise<BroadcastStep | null> {
  await database.transaction(async (trx) => {
    const broadcast = await lockBroadcast(trx, ids);
    if (broadcast?.state !== 'running') return;
    await setBroadcastState(trx, ids.broadcastId, { state: 'done' });
    await finishTask(trx, broadcastWorkflowId(ids.broadcastId));
  });
  return await looked(database, ids, null);
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
