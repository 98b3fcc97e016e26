import {
  CancellationScope,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow';
import type { SendMessageActivities, SendResult } from '../activities/send-message.ts';
import type { SendMessageInput } from '../messages/send/record-send.ts';
import { LOST_WORKER_RETRY, queuesBeside } from '../platform/temporal/workflow-options.ts';

function sending(): SendMessageActivities {
  return proxyActivities<SendMessageActivities>({
    taskQueue: queuesBeside(workflowInfo().taskQueue).sends,
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
    retry: LOST_WORKER_RETRY,
    summary: 'wait for the turn, call upstream, record',
  });
}

function givingUp(): SendMessageActivities {
  return proxyActivities<SendMessageActivities>({
    taskQueue: queuesBeside(workflowInfo().taskQueue).sends,
    startToCloseTimeout: '1 minute',
    retry: LOST_WORKER_RETRY,
    summary: 'mark as failed',
  });
}

/**
 * Owns one outbound message until upstream has accepted it, or it has failed for good, or its outcome stays unknown.
 *
 *   sendToUpstream: one activity; retried while limits let it wait and while upstream refuses for reasons that pass
 *        │ accepted ─▶ its statuses follow from upstream
 *        │ refused for good ─▶ `status` event with `failed`
 *        │ no answer, or the worker died during the call ─▶ unknown: never sent again; a status may still tell
 *
 * Cancel means give up, unless it is being sent. Terminate loses nothing: the task in the database starts this
 * workflow again.
 */
export async function sendMessage(input: SendMessageInput): Promise<SendResult> {
  setCurrentDetails(
    `**Sending message ${input.messageId}** of WABA ${input.wabaId}.\n\n` +
      'While it waits, the pending activity shows why and until when.',
  );
  const result = await sendOrGiveUp(input);
  setCurrentDetails(`**${result.outcome}**, message ${input.messageId}. ${result.summary}`);
  return result;
}

async function sendOrGiveUp(input: SendMessageInput): Promise<SendResult> {
  try {
    return await sending().sendToUpstream(input);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return await CancellationScope.nonCancellable(() => givingUp().giveUpSend(input));
  }
}
