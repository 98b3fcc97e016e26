import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { DeliverSessionActivities } from '../activities/deliver-session/activities.ts';
import { queuesBeside } from './task-queues.ts';

/** Long before the server asks for it, and rarely: a seat lasts an hour. */
const SEATS_PER_RUN = 100;

/**
 * Flood control: while more is due than workflows of their own could carry, a worker process claims and attempts
 * deliveries on behalf of this one. What does not succeed at once goes on in a workflow of its own (deliverEvent).
 *
 *   claim while there is work ──idle, or the process stops──▶ done
 *        │ an hour is over
 *        └──▶ again
 *
 * Cancel and terminate are harmless: claims return by their leases, and the next due delivery starts another session.
 */
export async function deliverSession(): Promise<string> {
  const { claimWhileBusy } = proxyActivities<DeliverSessionActivities>({
    taskQueue: queuesBeside(workflowInfo().taskQueue).sessions,
    startToCloseTimeout: '70 minutes',
    heartbeatTimeout: '10 seconds',
    retry: { initialInterval: '1 second', backoffCoefficient: 1 },
    summary: 'claims and attempts deliveries',
  });
  for (let seat = 0; seat < SEATS_PER_RUN; seat += 1) {
    const { ended, summary } = await claimWhileBusy();
    if (ended) return summary;
    setCurrentDetails(summary);
  }
  return await continueAsNew<typeof deliverSession>();
}
