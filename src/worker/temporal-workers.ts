import { type NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
import type { Logger } from '../platform/logger.ts';
import { REDACT_FAILURES } from '../platform/temporal/worker-connection.ts';

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
