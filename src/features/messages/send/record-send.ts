import { publishEvents } from '../../../engine/deliveries/publish.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { retryBriefly } from '../../../platform/temporal/activity-kit.ts';
import { deleteTasks, finishTask } from '../../../platform/temporal/workflow-tasks.ts';
import { noteProblems, UNPAID_CODE, unpaidReport } from '../../accounts/upstream-problems.ts';
import { noteLaterMessage, noteLaterMessages } from '../../customers/customers.ts';
import { noteRefusedRecipient, OPTED_OUT_CODE } from '../../customers/opt-outs.ts';
import { findThread } from '../conversations/thread.ts';
import { localMessageId } from '../messages.ts';
import { recordStatuses } from '../statuses.ts';
import {
  type AcceptedMessage,
  acceptMessages,
  endMessage,
  type FailedMessage,
  findFailedMessage,
  requeueMessage,
  type SendAttempt,
  type SendState,
} from './outbound-messages.ts';
import { type SendError, statusErrorOf } from './send-error.ts';
import { HELD_BACK_PACE, holdBack, PAIR_PACE } from './send-pacing.ts';
import { sendWorkflowId } from './send-task.ts';
import type { SendVerdict } from './send-verdict.ts';

export type SendMessageInput = { wabaId: string; messageId: string };

/** The response is known by now: a short absence of the database must not turn it into an unknown outcome. */
const RETRY_DELAYS_MS = [100, 1_000, 2_000, 5_000, 10_000, 10_000, 10_000];

/** Tries for half a minute. */
export async function untilRecorded<T>(record: () => Promise<T>): Promise<T> {
  return await retryBriefly(record, RETRY_DELAYS_MS);
}

export async function recordAccepted(
  database: Database,
  input: SendMessageInput,
  accepted: AcceptedMessage,
): Promise<void> {
  await database.transaction(async (trx) => {
    await acceptMessages(trx, input.wabaId, [{ ...input, ...accepted }]);
    await finish(trx, [input.messageId]);
  });
}

/** One that upstream accepted, and whose conversation does not say yet that it was sent. */
export type NewlyAccepted = AcceptedMessage & { messageId: string; conversationId: string };

export async function recordAllAccepted(
  database: Database,
  wabaId: string,
  messages: readonly NewlyAccepted[],
): Promise<void> {
  const latest = [...new Map(messages.map((one) => [one.conversationId, one])).values()];
  const noted = await noteLaterMessages(database, latest);
  await Promise.all(
    latest
      .filter(({ conversationId }) => !noted.has(conversationId))
      .map(({ conversationId, messageId }) => noteLaterMessage(database, conversationId, messageId)),
  );
  await database.transaction(async (trx) => {
    await acceptMessages(trx, wabaId, messages);
    await finish(
      trx,
      messages.map(({ messageId }) => messageId),
    );
  });
}

export async function recordUnknown(
  database: Database,
  input: SendMessageInput,
  error: SendError,
  from: readonly SendState[] = ['sending'],
): Promise<void> {
  await database.transaction(async (trx) => {
    await endMessage(trx, input, { state: 'unknown', from, error: JSON.stringify(error) });
    await finish(trx, [input.messageId]);
  });
}

/**
 * The tenant gets the same event as for a message that upstream could not deliver. False: it is not in one of `from`. Then the task goes on when
 * `from` has `queued`: an attempt may be under way or lost.
 */
export async function recordFailed(
  database: Database,
  input: SendMessageInput,
  error: SendError,
  from: readonly SendState[] = ['sending', 'unknown'],
): Promise<boolean> {
  return await database.transaction(async (trx) => {
    const end = (of: readonly SendState[], kept: SendError) =>
      endMessage(trx, input, { state: 'failed', from: of, error: JSON.stringify(kept) });
    const ended = await end(from, error);
    if (ended) {
      const message = await findFailedMessage(trx, input.wabaId, input.messageId);
      const isOthersThread = await isOfAnotherResponder(trx, input.wabaId, message, error);
      if (isOthersThread) await end(['failed'], { ...error, isOthersThread });
      await publishFailure(trx, input, message, error);
    }
    if (ended || !from.includes('queued')) await finish(trx, [input.messageId]);
    return ended;
  });
}

/** Whether upstream refused a free-form message to a conversation that another responder has; templates need no ownership. */
async function isOfAnotherResponder(
  trx: Transaction,
  wabaId: string,
  { type, conversationId }: FailedMessage,
  error: SendError,
): Promise<boolean> {
  if (error.code !== 'upstream_refused' || type === 'template') return false;
  return (await findThread(trx, wabaId, conversationId))?.owner === 'other';
}

/** Others wait with it where upstream said so. */
export async function recordAgain(
  database: Database,
  attempt: SendAttempt & { phoneNumberId: string; recipient: string },
  verdict: Extract<SendVerdict, { kind: 'again' }>,
  waitMs: number,
): Promise<void> {
  const { phoneNumberId, recipient } = attempt;
  await database.transaction(async (trx) => {
    const redrawPair = verdict.holdBack === 'pair';
    await requeueMessage(trx, attempt, { error: JSON.stringify(verdict.error), redrawPair });
    if (redrawPair) await holdBack(trx, { phoneNumberId, recipient }, PAIR_PACE, waitMs);
    if (verdict.holdBack === 'number') {
      await holdBack(trx, { phoneNumberId, recipient: null }, HELD_BACK_PACE, waitMs);
    }
  });
}

export async function recordOver(database: Database, input: SendMessageInput): Promise<void> {
  await database.transaction((trx) => finishTask(trx, sendWorkflowId(input.messageId)));
}

async function finish(trx: Transaction, messageIds: readonly string[]): Promise<void> {
  await deleteTasks(trx, messageIds.map(sendWorkflowId));
  // Wakes outcome-waiter.ts when the transaction commits.
  for (const id of messageIds) trx.notify('heliograph_sends', id);
}

async function publishFailure(
  trx: Transaction,
  { wabaId, messageId }: SendMessageInput,
  message: FailedMessage,
  error: SendError,
): Promise<void> {
  const { tenantId, phoneNumberId, conversationId } = message;
  const at = new Date();
  const { id, statusJson, dataJson } = failedStatus({ ...message, messageId, error, at });
  const status = {
    phoneNumberId,
    upstreamId: id,
    status: 'failed',
    participant: null,
    at,
    content: statusJson,
  };
  await recordStatuses(trx, [status]);
  const base = { wabaId, tenantId, phoneNumberId, conversationId, messageId };
  await publishEvents(trx, [{ ...base, type: 'status', eventId: id, laneKey: id, dataJson }], at);
  if (error.upstream?.code === OPTED_OUT_CODE) await noteRefusedRecipient(trx, base, at);
  if (error.upstream?.code === UNPAID_CODE)
    await noteProblems(trx, [unpaidReport(wabaId, phoneNumberId, at)]);
}

type FailedSend = Pick<FailedMessage, 'phoneNumberId' | 'displayPhoneNumber' | 'recipient' | 'content'> & {
  messageId: string;
  error: SendError;
  at: Date;
};

/** In the form of upstream's own `failed` status, and `data` of its event. */
export function failedStatus(send: FailedSend): { id: string; statusJson: string; dataJson: string } {
  const id = localMessageId(send.messageId);
  const isPhone = /^\d+$/.test(send.recipient);
  const { biz_opaque_callback_data: opaque, recipient_type: kind } = JSON.parse(send.content) as Record<
    string,
    unknown
  >;
  const status = {
    id,
    status: 'failed',
    timestamp: String(Math.floor(send.at.getTime() / 1_000)),
    recipient_id: send.recipient,
    ...(kind === 'group' ? { recipient_type: kind } : isPhone ? {} : { recipient_user_id: send.recipient }),
    ...(typeof opaque === 'string' ? { biz_opaque_callback_data: opaque } : {}),
    errors: [statusErrorOf(send.error)],
  };
  const metadata = {
    display_phone_number: send.displayPhoneNumber.replace(/\D/g, ''),
    phone_number_id: send.phoneNumberId,
  };
  return { id, statusJson: JSON.stringify(status), dataJson: JSON.stringify({ metadata, status }) };
}
