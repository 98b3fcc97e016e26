import { setCurrentDetails } from '@temporalio/workflow';
import type { SendMessageActivities } from '../activities/send-message.ts';
import type { SendResult } from '../features/messages/send/make-send.ts';
import type { SendMessageInput } from '../features/messages/send/record-send.ts';
import { activitiesOn, orGiveUp } from './kit.ts';

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
  const sending = activitiesOn<SendMessageActivities>('sends', {
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
    summary: 'wait for the turn, call upstream, record',
  });
  const givingUp = activitiesOn<SendMessageActivities>('sends', {
    startToCloseTimeout: '1 minute',
    summary: 'mark as failed',
  });
  setCurrentDetails(
    `**Sending message ${input.messageId}** of WABA ${input.wabaId}.\n\n` +
      'While it waits, the pending activity shows why and until when.',
  );
  const result = await orGiveUp(
    () => sending.sendToUpstream(input),
    () => givingUp.giveUpSend(input),
  );
  setCurrentDetails(`**${result.outcome}**, message ${input.messageId}. ${result.summary}`);
  return result;
}
