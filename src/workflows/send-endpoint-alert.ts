import { setCurrentDetails } from '@temporalio/workflow';
import type { AlertActivities } from '../activities/send-endpoint-alert.ts';
import type { SendEndpointAlertInput } from '../ops/alerts/attempt-alert.ts';
import { activitiesOn, orGiveUp, resultOf } from './kit.ts';

/**
 * Tells a tenant about one of its webhook endpoints, at its operations URL.
 *
 *   sendAlert: one activity, retried for about 9 hours; its last failure says why and when next
 *
 * Cancel means give up. Terminate loses nothing: the task in the database starts this workflow again.
 */
export async function sendEndpointAlert(input: SendEndpointAlertInput): Promise<string> {
  const { sendAlert, giveUpAlert } = activitiesOn<AlertActivities>('operations', {
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
  });
  setCurrentDetails(
    `**Telling WABA ${input.wabaId} about one of its endpoints.**\n\n` +
      'While it waits, the pending activity shows the last answer and the time of the next attempt.',
  );
  const send = async () => resultOf(await sendAlert(input), 'AlertFailed');
  return await orGiveUp(send, () => giveUpAlert(input));
}
