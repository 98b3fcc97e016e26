import type { WorkerOptions } from '@temporalio/worker';
import type { taskQueues } from '../workflows/task-queues.ts';
import type { WorkflowBundle } from './workflow-bundle.ts';

/** Attempts mostly wait for the network, so many may do so side by side. */
const ATTEMPT_SLOTS = 200;

/** Each download holds up to two upload parts of 5 MiB. */
const MEDIA_SLOTS = 20;
const ORDER_SLOTS = 50;

/** One worker per task queue; two of them run workflows, the others activities only. */
export function workerOptions(parts: {
  namespace: string;
  queues: ReturnType<typeof taskQueues>;
  workflowBundle: WorkflowBundle;
  deliver: object;
  media: { activities: object; orderActivities: object };
}): WorkerOptions[] {
  const { namespace, queues, workflowBundle, deliver, media } = parts;
  const workflows = { workflowBundle, maxConcurrentWorkflowTaskExecutions: 40, maxCachedWorkflows: 300 };
  const queue = (taskQueue: string, activities: object, slots: number): WorkerOptions => ({
    namespace,
    taskQueue,
    activities,
    maxConcurrentActivityTaskExecutions: slots,
  });
  return [
    { ...workflows, ...queue(queues.deliveries, deliver, ATTEMPT_SLOTS) },
    { ...workflows, ...queue(queues.media, media.activities, MEDIA_SLOTS) },
    queue(queues.deliveryRetries, deliver, ATTEMPT_SLOTS),
    queue(queues.orders, media.orderActivities, ORDER_SLOTS),
  ];
}
