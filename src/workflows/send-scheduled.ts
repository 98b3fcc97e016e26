import { setCurrentDetails } from '@temporalio/workflow';
import type { SendScheduledActivities } from '../activities/send-scheduled.ts';
import type { SharedMoment } from '../features/messages/send/shared-moment.ts';
import { activitiesOn } from './kit.ts';

/** Sends a number's many messages for one moment, one after the other. One that has to wait has its own workflow, and all have one should this end. */
export async function sendScheduled(moment: SharedMoment): Promise<string> {
  const { phoneNumberId, wabaId, sendAt } = moment;
  const activities = activitiesOn<SendScheduledActivities>('operations', {
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: '10 seconds',
    summary: 'send them at the pace of the number',
  });
  setCurrentDetails(`**Messages for ${sendAt}** of number ${phoneNumberId}, WABA ${wabaId}.`);
  return await activities.sendMoment(moment);
}
