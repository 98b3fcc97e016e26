import type { WorkerOptions } from '@temporalio/worker';
import type { taskQueues } from '../platform/temporal/task-queues.ts';
import type { WorkflowBundle } from './workflow-bundle.ts';

/** Attempts mostly wait for the network, so many may do so side by side. */
const ATTEMPT_SLOTS = 200;

/** Each download holds up to two upload parts of 5 MiB. */
const MEDIA_SLOTS = 20;
const ORDER_SLOTS = 50;
const OPERATION_SLOTS = 20;

/** Sends mostly wait for upstream; the limits per number are kept apart from this. */
const SEND_SLOTS = 200;

/** One worker per task queue; the first runs the workflows too. */
export function workerOptions(parts: {
  namespace: string;
  queues: ReturnType<typeof taskQueues>;
  /** Host and process. */
  worker: string;
  workflowBundle: WorkflowBundle;
  activities: {
    deliver: object;
    session: object;
    media: object;
    orders: object;
    sends: object;
    operations: object;
  };
}): WorkerOptions[] {
  const { namespace, queues, worker, workflowBundle, activities } = parts;
  const workflows = { workflowBundle, maxConcurrentWorkflowTaskExecutions: 40, maxCachedWorkflows: 300 };
  const queue = (taskQueue: string, implementations: object, slots: number): WorkerOptions => ({
    namespace,
    taskQueue,
    activities: implementations,
    maxConcurrentActivityTaskExecutions: slots,
  });
  return [
    { ...workflows, ...queue(queues.deliveries, activities.deliver, ATTEMPT_SLOTS) },
    queue(queues.media, activities.media, MEDIA_SLOTS),
    queue(queues.operations, activities.operations, OPERATION_SLOTS),
    queue(queues.deliveryRetries, activities.deliver, ATTEMPT_SLOTS),
    { ...queue(queues.session(worker), activities.session, 1), maxConcurrentActivityTaskPolls: 1 },
    queue(queues.orders, activities.orders, ORDER_SLOTS),
    queue(queues.sends, activities.sends, SEND_SLOTS),
  ];
}
