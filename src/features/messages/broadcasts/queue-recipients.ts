import { shardOf } from '../../../engine/inbox/shards.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { insertWorkflowTasks } from '../../../platform/temporal/workflow-tasks.ts';
import { USER_ID } from '../../customers/customer-reference.ts';
import { lockCustomers } from '../../customers/customers-lock.ts';
import { optOutsOfConversations } from '../../customers/opt-outs.ts';
import { personOf } from '../../customers/person.ts';
import { scheduleMessagesOf } from '../send/broadcast-messages.ts';
import { RecipientOptedOut, refuseMarked } from '../send/opted-out.ts';
import { drawMessageIds, insertOutboundMessages, type SendPath } from '../send/outbound-messages.ts';
import { newMessage } from '../send/queue-message.ts';
import { lockConversationsOf } from '../send/recipient-conversations.ts';
import { SENT_WITHIN_MS, sendMessageTask } from '../send/send-task.ts';
import { messageTo } from './broadcast-message.ts';
import {
  bindRecipients,
  type PendingRecipient,
  suppressRecipients,
  takeRecipients,
} from './broadcast-recipients.ts';
import type { Broadcast } from './broadcast-store.ts';

/** Of the messages of a broadcast, as its template was when they were queued. */
export type BroadcastPath = { category: string | null; upstreamPath: SendPath };

/**
 * Stores the messages of recipients, with the tasks that make sure of them, in one transaction, and returns their ids, in the order of the recipients.
 * Who has a message gets no other; who wants none is suppressed. Nothing that dies afterwards loses or doubles a message.
 */
export async function queueRecipients(
  database: Database,
  broadcast: Broadcast,
  recipients: readonly PendingRecipient[],
  path: BroadcastPath,
): Promise<string[]> {
  const { id: broadcastId, wabaId, phoneNumberId } = broadcast;
  return await database.transaction(async (trx) => {
    await lockCustomers(trx, shardOf(wabaId));
    const taken = await takeRecipients(
      trx,
      broadcastId,
      recipients.map(({ id }) => id),
    );
    const wanted = await placed(
      trx,
      broadcast,
      recipients.filter(({ id }) => taken.has(id)),
      path,
    );
    if (wanted.length === 0) return [];
    // Drawn under the locks on the conversations, so that the ids of each are in the order of commits.
    const ids = await drawMessageIds(trx, wanted.length);
    const messages = wanted.map((one, n) => ({ ...one, id: ids[n] ?? '' }));
    const stored = { wabaId, apiKeyId: null, upstreamPath: path.upstreamPath };
    await Promise.all([
      insertOutboundMessages(
        trx,
        messages.map(({ id, conversationId, person, message }) =>
          newMessage({ ...stored, id, conversationId }, message, person),
        ),
      ),
      bindRecipients(trx, broadcastId, messages),
      scheduleMessagesOf(trx, { id: broadcastId, wabaId, phoneNumberId }, ids),
      insertWorkflowTasks(
        trx,
        messages.map(({ id, recipientId }) =>
          sendMessageTask(wabaId, id, null, { broadcastId, recipientId }),
        ),
        SENT_WITHIN_MS,
      ),
    ]);
    return ids;
  });
}

/** Their messages and conversations, which are locked, without those who want no message: they are suppressed. */
async function placed(
  trx: Transaction,
  broadcast: Broadcast,
  recipients: readonly PendingRecipient[],
  path: BroadcastPath,
) {
  if (recipients.length === 0) return [];
  const { wabaId, phoneNumberId } = broadcast;
  const people = recipients.map(({ recipient }) =>
    personOf(USER_ID.test(recipient) ? { userId: recipient } : { phone: recipient }),
  );
  const conversationIds = await lockConversationsOf(trx, wabaId, phoneNumberId, people);
  const marks = await optOutsOfConversations(trx, wabaId, conversationIds);
  const suppressed: string[] = [];
  const wanted = [];
  for (const [n, recipient] of recipients.entries()) {
    const [person, conversationId] = [people[n], conversationIds[n]];
    if (person === undefined || conversationId === undefined) throw new Error('a recipient has no place');
    const message = messageTo(broadcast, recipient);
    const mark = marks.get(conversationId);
    if (await isRefused(refuseMarked(trx, { wabaId, conversationId, message, ...path }, mark)))
      suppressed.push(recipient.id);
    else wanted.push({ recipientId: recipient.id, person, conversationId, message });
  }
  await suppressRecipients(trx, broadcast.id, suppressed);
  return wanted;
}

async function isRefused(judging: Promise<void>): Promise<boolean> {
  try {
    await judging;
    return false;
  } catch (error) {
    if (error instanceof RecipientOptedOut) return true;
    throw error;
  }
}
