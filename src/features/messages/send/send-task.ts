import type { TaskKind, WorkflowTask } from '../../../platform/temporal/workflow-tasks.ts';

export const SEND_MESSAGE: TaskKind = {
  workflowType: 'sendMessage',
  summary: 'send a message to a customer',
  isStartedByItsRoom: true,
};

export function sendMessageTask(wabaId: string, messageId: string): WorkflowTask {
  return {
    workflowId: sendWorkflowId(messageId),
    kind: SEND_MESSAGE,
    wabaId,
    eventId: messageId,
    argument: { wabaId, messageId },
  };
}

export function sendWorkflowId(messageId: string): string {
  return `send/${messageId}`;
}
