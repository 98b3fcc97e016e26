import {
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow';
import type { AlertActivities, AlertEnd } from '../activities/send-endpoint-alert.ts';
import type { SendEndpointAlertInput } from '../alerts/attempt-alert.ts';
import { LOST_WORKER_RETRY, queuesBeside } from '../platform/temporal/workflow-options.ts';

function activities(): AlertActivities {
  return proxyActivities<AlertActivities>({
    taskQueue: queuesBeside(workflowInfo().taskQueue).operations,
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
    retry: LOST_WORKER_RETRY,
  });
}

/**
 * Tells a tenant about one of its webhook endpoints, at its operations URL.
 *
 *   sendAlert: one activity, retried for about 9 hours; its last failure says why and when next
 *
 * Cancel means give up. Terminate loses nothing: the task in the database starts this workflow again.
 */
export async function sendEndpointAlert(input: SendEndpointAlertInput): Promise<string> {
  const { sendAlert, giveUpAlert } = activities();
  setCurrentDetails(
    `**Telling WABA ${input.wabaId} about one of its endpoints.**\n\n` +
      'While it waits, the pending activity shows the last answer and the time of the next attempt.',
  );
  try {
    return resultOf(await sendAlert(input));
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return await CancellationScope.nonCancellable(() => giveUpAlert(input));
  }
}

/** An alert that no receiver took is a failed workflow, so that operators find it by its status. */
function resultOf({ failed, summary }: AlertEnd): string {
  if (failed) throw ApplicationFailure.create({ message: summary, type: 'AlertFailed', nonRetryable: true });
  return summary;
}
