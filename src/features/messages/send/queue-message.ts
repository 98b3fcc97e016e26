import { readPhoneNumber } from '../../../platform/phone-number.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { insertWorkflowTasks } from '../../../platform/temporal/workflow-tasks.ts';
import { countMessageOfKey, type SendLimits } from '../../keys/send-limits.ts';
import { isWindowOpen } from '../conversations/conversations.ts';
import { bindIdempotencyKey, type IdempotencyKey, takeIdempotencyKey } from './idempotency-keys.ts';
import { mediaUsesOf, orderPaymentOf } from './message-content.ts';
import { refuseOptedOut } from './opted-out.ts';
import {
  drawMessageIds,
  insertOutboundMessages,
  type NewOutboundMessage,
  type SendPath,
} from './outbound-messages.ts';
import { lockRecipientConversation, type Recipient } from './recipient-conversations.ts';
import { insertSchedule } from './scheduled-messages.ts';
import { sendMessageTask } from './send-task.ts';
import type { SendTimes } from './send-times.ts';
import { shareMoment } from './shared-moment.ts';
import { type MessageToSend, typeOf, upstreamPayload } from './upstream-payload.ts';

/** The API starts the workflow itself; the worker does so when nothing has come of it by then. */
const START_WITHIN_MS = 5_000;
/** Longer than the messages of a moment take; each is held again when its turn comes. */
const MOMENT_WITHIN_MS = 3_600_000;

export type Sender = SendLimits & { wabaId: string; keyId: string | null };

/** How long no other process may answer this request, in ms: longer than its handler may take. */
export const HOLD_MS = 20_000;

type Queued = {
  key: IdempotencyKey | null;
  upstreamPath?: SendPath;
  /** Of its template, where it was looked up. */
  category?: string | null;
  /** Null: it is sent at once. */
  times?: SendTimes | null;
};

/**
 * Stores a checked request as a message that is to be sent, with its Idempotency-Key and the task that makes sure of
 * it, in one transaction. Returns the Message_Id; null when the key is taken. Nothing that dies afterwards loses or
 * doubles the message. Throws RequestError for what the API key may not send and for what the customer wants no more, and
 * CategoryNeeded where that depends on the category, and RateLimitError `too_many_scheduled`; then it stores nothing.
 */
export async function queueMessage(
  database: Database,
  account: Sender,
  request: MessageToSend,
  { key, upstreamPath = 'messages', category, times = null }: Queued,
): Promise<string | null> {
  const { wabaId, keyId } = account;
  return await database.transaction(async (trx) => {
    if (key !== null && !(await takeIdempotencyKey(trx, wabaId, key, HOLD_MS))) return null;
    const recipient = recipientOf(request);
    const { phoneNumberId } = request;
    const activity = times === null ? 'now' : 'later';
    const conversationId = await lockRecipientConversation(trx, wabaId, phoneNumberId, recipient, activity);
    await refuseOptedOut(trx, { wabaId, conversationId, message: request, upstreamPath, category });
    await refuseBeyondLimits(trx, account, conversationId);
    // Drawn under the lock on the conversation, so that its ids are in the order of commits.
    const [id = ''] = await drawMessageIds(trx, 1);
    const stored = { id, wabaId, conversationId, apiKeyId: keyId, upstreamPath };
    await insertOutboundMessages(trx, [newMessage(stored, request, recipient)]);
    if (key !== null) await bindIdempotencyKey(trx, wabaId, key, id);
    if (times !== null) {
      await insertSchedule(trx, database, { id, wabaId, phoneNumberId, ...times });
      await insertScheduledTask(trx, { id, wabaId, phoneNumberId, ...times });
    } else {
      await insertWorkflowTasks(trx, [sendMessageTask(wabaId, id)], START_WITHIN_MS);
    }
    return id;
  });
}

/** A request as it is stored. */
export function newMessage(
  stored: Pick<NewOutboundMessage, 'id' | 'wabaId' | 'conversationId' | 'apiKeyId' | 'upstreamPath'>,
  request: MessageToSend,
  recipient: Recipient,
): NewOutboundMessage {
  const { reaction } = request as { reaction?: { message_id: string } };
  const content = upstreamPayload(request, stored.id);
  const whole: unknown = JSON.parse(content);
  const mediaIds = new Set(mediaUsesOf(whole).flatMap(({ uuid }) => uuid ?? []));
  return {
    ...stored,
    phoneNumberId: request.phoneNumberId,
    type: String(typeOf(request)),
    recipient: 'groupId' in recipient ? recipient.groupId : (recipient.waId ?? recipient.userId),
    content,
    contextId: request.context?.message_id ?? null,
    targetId: reaction?.message_id ?? null,
    mediaIds: [...mediaIds],
    payment: orderPaymentOf(whole),
  };
}

async function insertScheduledTask(
  trx: Transaction,
  message: { id: string; wabaId: string; phoneNumberId: string; sendAt: Date },
): Promise<void> {
  const { id, wabaId, sendAt } = message;
  const momentId = await shareMoment(trx, message);
  if (momentId === null) await insertWorkflowTasks(trx, [sendMessageTask(wabaId, id, sendAt)]);
  else {
    const withinMs = sendAt.getTime() - Date.now() + MOMENT_WITHIN_MS;
    await insertWorkflowTasks(trx, [sendMessageTask(wabaId, id, null, { momentId })], withinMs);
  }
}

/** The last lock of the transaction but for new rows, so that messages of one key wait for each other only shortly. */
async function refuseBeyondLimits(
  trx: Transaction,
  { wabaId, keyId, maxMessagesPerDay, recipients }: Sender,
  conversationId: string,
): Promise<void> {
  if (recipients === 'open_conversations' && !(await isWindowOpen(trx, wabaId, conversationId))) {
    const message = 'The API key may only send to conversations whose customer service window is open.';
    throw new RequestError('recipient_not_open', message);
  }
  if (maxMessagesPerDay !== null && keyId !== null) await countMessageOfKey(trx, wabaId, keyId);
}

function recipientOf({ to, recipient, recipient_type: kind }: MessageToSend): Recipient {
  if (kind === 'group') return { groupId: to ?? '' };
  if (to !== undefined) return { waId: readPhoneNumber(to) ?? to, userId: null };
  return { waId: null, userId: recipient ?? '' };
}
