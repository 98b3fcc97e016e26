import { type Client, ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import type { Logger } from '../platform/logger.ts';
import { type Loop, startLoop } from '../platform/loop.ts';

/** Its name in the Temporal UI; installations that share a namespace have separate task queues. */
export function numberScheduleId(taskQueue: string): string {
  return `phone-numbers-daily/${taskQueue}`;
}

type ScheduleTools = { client: Client; taskQueue: string };

/** Makes sure, hourly, that Temporal has the schedule of the daily look at all phone numbers: it may lose its data. */
export function startNumberSchedule(tools: ScheduleTools & { logger: Logger }): Loop {
  return startLoop({
    name: 'number-schedule',
    logger: tools.logger,
    turn: async () => {
      await ensureNumberSchedule(tools);
      return false;
    },
  });
}

/** Creates the schedule unless it is there; an operator may have paused or changed it. */
export async function ensureNumberSchedule({ client, taskQueue }: ScheduleTools): Promise<void> {
  try {
    await client.schedule.create({
      scheduleId: numberScheduleId(taskQueue),
      spec: { intervals: [{ every: '1 day', offset: '3 hours' }] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1 day' },
      action: {
        type: 'startWorkflow',
        workflowType: 'refreshAllNumbers',
        workflowId: numberScheduleId(taskQueue),
        taskQueue,
        staticSummary: 'the daily look at all phone numbers',
      },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}
