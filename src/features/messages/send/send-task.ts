import type { TaskKind, WorkflowTask } from '../../../platform/temporal/workflow-tasks.ts';

export const SEND_MESSAGE: TaskKind = {
  workflowType: 'sendMessage',
  summary: 'send a message to a customer',
  isStartedByItsRoom: true,
  listed: ['broadcastId', 'recipientId'],
};

/** `sendAt`: Temporal starts it then. `recipient`: of a broadcast, so that Temporal knows who has had a message when the database forgot. */
export function sendMessageTask(
  wabaId: string,
  messageId: string,
  sendAt: Date | null = null,
  recipient: { broadcastId: string; recipientId: string } | null = null,
): WorkflowTask {
  return {
    workflowId: sendWorkflowId(messageId),
    kind: SEND_MESSAGE,
    wabaId,
    eventId: messageId,
    argument: { wabaId, messageId, ...recipient },
    ...(sendAt !== null && { startsAt: sendAt, summary: scheduledSummary(sendAt) }),
  };
}

export function scheduledSummary(sendAt: Date): string {
  return `${SEND_MESSAGE.summary} at ${sendAt.toISOString()}`;
}

export function sendWorkflowId(messageId: string): string {
  return `send/${messageId}`;
}
