import type { TaskKind, WorkflowTask } from '../../../platform/temporal/workflow-tasks.ts';

export const SEND_MESSAGE: TaskKind = {
  workflowType: 'sendMessage',
  summary: 'send a message to a customer',
  isStartedByItsRoom: true,
  listed: ['broadcastId', 'recipientId', 'momentId'],
};

/** By then a worker that sends a message itself is done with it, or has died. */
export const SENT_WITHIN_MS = 60_000;

/**
 * `sendAt`: Temporal starts it then. `sentBy`: what sends it itself, and for whom in a broadcast, so that Temporal knows who has had a message when the
 * database forgot.
 */
export function sendMessageTask(
  wabaId: string,
  messageId: string,
  sendAt: Date | null = null,
  sentBy: { broadcastId: string; recipientId: string } | { momentId: string } | null = null,
): WorkflowTask {
  return {
    workflowId: sendWorkflowId(messageId),
    kind: SEND_MESSAGE,
    wabaId,
    eventId: messageId,
    argument: { wabaId, messageId, ...sentBy },
    ...(sendAt !== null && { startsAt: sendAt, summary: scheduledSummary(sendAt) }),
  };
}

export function scheduledSummary(sendAt: Date): string {
  return `${SEND_MESSAGE.summary} at ${sendAt.toISOString()}`;
}

export function sendWorkflowId(messageId: string): string {
  return `send/${messageId}`;
}
