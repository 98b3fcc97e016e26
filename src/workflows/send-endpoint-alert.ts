import { setCurrentDetails } from '@temporalio/workflow';
import type { AlertActivities, SendEndpointAlertInput } from '../activities/send-endpoint-alert.ts';
import { activitiesOn, orGiveUp, resultOf } from './kit.ts';

/** Of an earlier release, which sent alerts to operations URLs by it: its runs end at their next attempt. */
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
