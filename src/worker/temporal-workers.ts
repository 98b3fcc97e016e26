import { type NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
import type { Logger } from '../platform/logger.ts';
import type { taskQueues } from '../platform/temporal/task-queues.ts';
import { REDACT_FAILURES } from '../platform/temporal/worker-connection.ts';
import type { WorkflowBundle } from './workflow-bundle.ts';

const RESTART_MS = 2_000;

export type TemporalWorkers = { stop(): Promise<void> };

/**
 * Runs one Temporal worker per entry until stopped. A worker that ends by itself (Temporal lost its data or was
 * away for too long) is made anew, for ever: deliveries wait meanwhile. `ensure` brings back first what they need.
 * Once stopped, what is under way has `graceMs` to end by itself before it is cancelled.
 */
export async function runTemporalWorkers(
  connection: NativeConnection,
  entries: readonly WorkerOptions[],
  { logger, ensure, graceMs }: { logger: Logger; ensure: () => Promise<void>; graceMs: number },
): Promise<TemporalWorkers> {
  let stopping = false;
  const current = new Map<WorkerOptions, Worker>();

  const create = async (options: WorkerOptions) => {
    const worker = await Worker.create({
      connection,
      shutdownGraceTime: graceMs,
      interceptors: REDACT_FAILURES,
      ...options,
    });
    current.set(options, worker);
    return worker;
  };
  const keepRunning = async (options: WorkerOptions, first: Worker) => {
    let worker: Worker | null = first;
    while (!stopping) {
      try {
        if (worker === null) {
          await ensure();
          worker = await create(options);
        }
        const run = worker.run();
        // `stop` may have come before this one was there to be told.
        if (stopping) worker.shutdown();
        await run;
      } catch (error) {
        logger.warn(
          { err: error, taskQueue: options.taskQueue },
          'a Temporal worker ended; making a new one',
        );
      }
      worker = null;
      if (!stopping) await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
    }
  };

  const first = await Promise.all(
    entries.map(async (options) => ({ options, worker: await create(options) })),
  );
  const running = first.map(({ options, worker }) => keepRunning(options, worker));
  return {
    stop: async () => {
      stopping = true;
      for (const worker of current.values()) if (worker.getState() === 'RUNNING') worker.shutdown();
      await Promise.all(running);
    },
  };
}

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
