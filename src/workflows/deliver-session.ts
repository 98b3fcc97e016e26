import {
  ActivityFailure,
  continueAsNew,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { DeliverSessionActivities } from '../activities/deliver-session.ts';
import type { DeliverSessionInput } from '../engine/deliveries/dispatch/start-workflows.ts';

/** Long before the server asks for it, and rarely: an activity lasts an hour. */
const HOURS_PER_RUN = 100;

/**
 * Shows the delivery loop of one worker process in Temporal, from its start to its end. The pending activity has the
 * counts of this hour; attempts without their own workflow name this one.
 *
 *   show the loop for an hour ──the process stops, or is gone──▶ done
 *        │ an hour is over
 *        └──▶ again
 *
 * Cancel and terminate are harmless: the loop goes on, and its process starts this workflow again.
 */
export async function deliverSession({ taskQueue }: DeliverSessionInput): Promise<string> {
  const { showLoop } = proxyActivities<DeliverSessionActivities>({
    taskQueue,
    startToCloseTimeout: '70 minutes',
    scheduleToStartTimeout: '10 seconds',
    heartbeatTimeout: '10 seconds',
    retry: { initialInterval: '1 second', backoffCoefficient: 1 },
    summary: 'the delivery loop of this worker',
  });
  for (let hour = 0; hour < HOURS_PER_RUN; hour += 1) {
    try {
      const { ended, summary } = await showLoop();
      if (ended) return summary;
      setCurrentDetails(summary);
    } catch (error) {
      if (isCancellation(error) || !isUnheard(error)) throw error;
      return 'The worker process is gone; the claims of its loop end with their leases.';
    }
  }
  return await continueAsNew<typeof deliverSession>({ taskQueue });
}

/** No worker took the activity: the process that polled for it has ended. */
function isUnheard(error: unknown): boolean {
  const isTimeout = error instanceof ActivityFailure && error.cause instanceof TimeoutFailure;
  return isTimeout && error.cause.timeoutType === 'SCHEDULE_TO_START';
}
