import { type NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
import type { Logger } from '../platform/logger.ts';
import { REDACT_FAILURES } from '../platform/temporal/worker-connection.ts';
import type { taskQueues } from '../platform/temporal/workflow-options.ts';
import type { WorkflowBundle } from './workflow-bundle.ts';

const RESTART_MS = 2_000;

export type TemporalWorkers = {
  /** Task queues that nothing here polls, and for how many milliseconds. */
  deafMs(): ReadonlyMap<string, number>;
  stop(): Promise<void>;
};

type RunOptions = {
  connection: NativeConnection;
  /** Another connection like it: the SDK keeps a worker that hangs registered at its own. */
  connect: () => Promise<NativeConnection>;
  logger: Logger;
  /** Brings back first what workers need, should Temporal have lost it. */
  ensure: () => Promise<void>;
  /** Once stopped, what is under way has so long to end by itself before it is cancelled. */
  graceMs: number;
};

type Run = {
  stopping: boolean;
  current: Map<WorkerOptions, Worker>;
  /** Since when an entry has no worker that runs (`performance.now()`). */
  deafSinceMs: Map<WorkerOptions, number>;
  /** Connections made for workers whose queue the first one still holds. */
  further: NativeConnection[];
};

/**
 * Runs one Temporal worker per entry until stopped. A worker that ends by itself (Temporal lost its data or was
 * away for too long), or hangs while it does, is made again, for ever: deliveries wait meanwhile.
 */
export async function runTemporalWorkers(
  entries: readonly WorkerOptions[],
  options: RunOptions,
): Promise<TemporalWorkers> {
  const run: Run = { stopping: false, current: new Map(), deafSinceMs: new Map(), further: [] };
  const { connection } = options;
  for (const worker of await Promise.all(entries.map((entry) => createWorker(entry, options, connection))))
    run.current.set(...worker);
  const running = [...run.current].map(([entry, first]) => keepRunning(entry, first, run, options));
  return {
    deafMs: () =>
      new Map([...run.deafSinceMs].map(([{ taskQueue }, atMs]) => [taskQueue, performance.now() - atMs])),
    stop: async () => {
      run.stopping = true;
      for (const worker of run.current.values()) if (worker.getState() === 'RUNNING') worker.shutdown();
      await Promise.all(running);
      await Promise.all(run.further.map((each) => each.close().catch(() => undefined)));
    },
  };
}

async function createWorker(
  entry: WorkerOptions,
  { graceMs: shutdownGraceTime }: RunOptions,
  connection: NativeConnection,
): Promise<[WorkerOptions, Worker]> {
  const common = { connection, shutdownGraceTime, interceptors: REDACT_FAILURES };
  return [entry, await Worker.create({ ...common, ...entry })];
}

async function keepRunning(
  entry: WorkerOptions,
  first: Worker,
  run: Run,
  options: RunOptions,
): Promise<void> {
  let worker: Worker | null = first;
  let { connection } = options;
  while (!run.stopping) {
    try {
      if (worker === null) {
        await options.ensure();
        worker = (await createWorker(entry, options, connection))[1];
        run.current.set(entry, worker);
      }
      run.deafSinceMs.delete(entry);
      const ended = worker.run();
      // `stop` may have come before this one was there to be stopped.
      if (run.stopping) worker.shutdown();
      if ((await Promise.race([ended, hangs(worker, run, options)])) === 'hangs') {
        void ended.catch(() => undefined);
        options.logger.warn({ taskQueue: entry.taskQueue }, 'a Temporal worker hangs; replacing it');
        if (!run.stopping) connection = await connectAnew(run, options);
      }
    } catch (error) {
      const { taskQueue } = entry;
      options.logger.warn({ err: error, taskQueue }, 'a Temporal worker ended; replacing it');
    }
    worker = null;
    if (!run.deafSinceMs.has(entry)) run.deafSinceMs.set(entry, performance.now());
    if (!run.stopping) await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
  }
}

async function connectAnew(run: Run, options: RunOptions): Promise<NativeConnection> {
  const connection = await options.connect();
  run.further.push(connection);
  return connection;
}

/** Beyond the grace of what is under way. */
const HANGS_AFTER_MS = 10_000;

/**
 * Resolves when a worker neither runs nor ends although nothing stopped it: after a while, or when the process is to
 * stop, which must not wait for it. Never for one that was stopped.
 */
async function hangs(worker: Worker, run: Run, { graceMs }: RunOptions): Promise<'hangs'> {
  let sinceMs: number | null = null;
  while (!run.stopping) {
    if (worker.getState() === 'RUNNING') sinceMs = null;
    else sinceMs ??= performance.now();
    if (sinceMs !== null && performance.now() - sinceMs > graceMs + HANGS_AFTER_MS) return 'hangs';
    await new Promise((resolve) => setTimeout(resolve, 1_000).unref());
  }
  return sinceMs === null ? await new Promise<never>(() => undefined) : 'hangs';
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
