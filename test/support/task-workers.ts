import { Worker } from '@temporalio/worker';
import type { Config } from '../../src/platform/config/config.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { connectTemporal, registerSearchAttributes } from '../../src/platform/temporal/worker-connection.ts';
import { taskQueues } from '../../src/platform/temporal/workflow-options.ts';
import { startWorkflowStarter } from '../../src/platform/temporal/workflow-starter.ts';
import { TASK_KINDS } from '../../src/worker/task-kinds.ts';
import { loadWorkflowBundle } from '../../src/worker/workflow-bundle.ts';
import { silentLogger } from './silent-logger.ts';
import { testEventIdHash } from './test-accounts.ts';

type Queues = Omit<ReturnType<typeof taskQueues>, 'session'>;

/** Workers of these queues, one of the workflows, and what starts these, until `stop`. */
export async function startTaskWorkers(
  { temporal }: Config,
  database: Database,
  activities: Partial<Record<keyof Queues, object>>,
) {
  const { connection, client } = await connectTemporal(temporal);
  await registerSearchAttributes(connection, temporal.namespace);
  const { session: _, ...queues } = taskQueues(temporal.taskQueuePrefix);
  const taskQueue = queues.deliveries;
  const workflowBundle = await loadWorkflowBundle(silentLogger);
  const workers = await Promise.all([
    Worker.create({ connection, workflowBundle, taskQueue }),
    ...Object.entries(queues).flatMap(([name, queue]) => {
      const ofQueue = activities[name as keyof Queues];
      return ofQueue === undefined
        ? []
        : [Worker.create({ connection, taskQueue: queue, activities: ofQueue })];
    }),
  ]);
  const running = workers.map((worker) => worker.run());
  const starter = startWorkflowStarter({
    database,
    client,
    taskQueue,
    logger: silentLogger,
    eventIdHash: testEventIdHash(database),
    kinds: TASK_KINDS,
  });
  const stop = async () => {
    await starter.stop();
    for (const worker of workers) worker.shutdown();
    await Promise.all(running);
    await connection.close();
  };
  return { client, taskQueue, stop };
}
