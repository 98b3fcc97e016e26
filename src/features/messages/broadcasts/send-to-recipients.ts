import type { Database } from '../../../platform/postgres/database.ts';
import { returnTasks } from '../../../platform/temporal/workflow-tasks.ts';
import type { SendResult, SendRun } from '../send/make-send.ts';
import { pathFor } from '../send/marketing-path.ts';
import { RecipientOptedOut } from '../send/opted-out.ts';
import type { SendPath } from '../send/outbound-messages.ts';
import { queueMessage } from '../send/queue-message.ts';
import type { SendMessageInput } from '../send/record-send.ts';
import { sendWorkflowId } from '../send/send-task.ts';
import { lookAtTemplate } from '../send/sent-template.ts';
import { messageTo } from './broadcast-message.ts';
import { type PendingRecipient, suppressRecipient } from './broadcast-recipients.ts';
import type { Broadcast } from './broadcast-store.ts';

export type BroadcastTools = {
  database: Database;
  /** `messagesPerSecond` holds for numbers without their own pace; null: as upstream allows. */
  sending: { messagesPerSecond: number | null };
  /** `makeSend`. */
  send: (input: SendMessageInput, run: SendRun) => Promise<SendResult>;
};

/** `atATime`: how many calls of upstream may be under way; `endsAtMs`: none begins after it (`performance.now()`). */
export type Pass = { atATime: number; endsAtMs: number; signal: AbortSignal; onMessage: () => void };

/** `failed`: one has, so that it should be looked whether the others may be sent; `waits`: one has to. */
export type PassEnd = 'through' | 'failed' | 'waits';

/** No API key sends them: the key that started the broadcast was judged then. */
const SENDER = { keyId: null, maxMessagesPerDay: null, recipients: 'any' } as const;

/** Longer than a turn is away at the pace of the number, shorter than what a pause or upstream's own limit asks for. */
const SITS_OUT_MS = 3_000;

/**
 * Gives recipients their messages, one after the other, and sends them here, without a workflow each. One that has to wait, or to be tried again, is
 * left to its own workflow. Then, or when one has failed, no other begins.
 */
export async function sendToRecipients(
  tools: BroadcastTools,
  broadcast: Broadcast,
  recipients: readonly PendingRecipient[],
  { atATime, endsAtMs, signal, onMessage }: Pass,
): Promise<PassEnd> {
  const [first] = recipients;
  if (first === undefined) return 'through';
  const { wabaId } = broadcast;
  const how = await pathOf(tools.database, broadcast, first);
  const underWay = new Set<Promise<void>>();
  let end: PassEnd = 'through';
  const begin = (messageId: string) => {
    const run = { attempt: 1, signal, sitsOutMs: SITS_OUT_MS };
    const sending = sendOrHandOver(tools, { wabaId, messageId }, run).then((one) => {
      if (end !== 'waits') end = one === 'through' ? end : one;
      underWay.delete(sending);
    });
    underWay.add(sending);
  };
  try {
    for (const recipient of recipients) {
      if (underWay.size >= atATime) await Promise.race(underWay);
      if (end !== 'through' || signal.aborted || performance.now() > endsAtMs) break;
      const messageId = await queueOne(tools.database, broadcast, recipient, how);
      if (messageId !== null) begin(messageId);
      onMessage();
    }
  } finally {
    await Promise.all(underWay);
  }
  return end;
}

/** A category that is not known is looked up at the message's turn. */
async function pathOf(database: Database, broadcast: Broadcast, recipient: PendingRecipient) {
  const message = messageTo(broadcast, recipient);
  const { category = null } = await lookAtTemplate(database, broadcast.wabaId, message);
  return { category, upstreamPath: await pathFor(database, broadcast.phoneNumberId, category) };
}

/** Null: the recipient wants no message, or has one, or the broadcast does not run any more. */
async function queueOne(
  database: Database,
  broadcast: Broadcast,
  recipient: PendingRecipient,
  how: { category: string | null; upstreamPath: SendPath },
): Promise<string | null> {
  const key = { broadcastId: broadcast.id, recipientId: recipient.id };
  try {
    const account = { ...SENDER, wabaId: broadcast.wabaId };
    const message = messageTo(broadcast, recipient);
    return await queueMessage(database, account, message, { ...how, key: null, recipient: key });
  } catch (error) {
    if (!(error instanceof RecipientOptedOut)) throw error;
    await suppressRecipient(database, key);
    return null;
  }
}

/** Whatever keeps it from its end, its workflow shows and retries. */
async function sendOrHandOver(
  { database, send }: BroadcastTools,
  input: SendMessageInput,
  run: SendRun,
): Promise<PassEnd> {
  try {
    const { outcome } = await send(input, run);
    return outcome === 'failed' ? 'failed' : 'through';
  } catch {
    // Where the database is away, the task is due soon by itself.
    await returnTasks(database, [sendWorkflowId(input.messageId)]).catch(() => undefined);
    database.notify('heliograph_workflow_tasks');
    return 'waits';
  }
}
