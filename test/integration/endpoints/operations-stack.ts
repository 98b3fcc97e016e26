import type { Client } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import type { MailSender } from '../../../src/features/mail/smtp.ts';
import { type Config, loadConfig } from '../../../src/platform/config/config.ts';
import { parseEncryptionKeys } from '../../../src/platform/crypto/secret-box.ts';
import type { Logger } from '../../../src/platform/logger.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import {
  connectTemporal,
  registerSearchAttributes,
} from '../../../src/platform/temporal/worker-connection.ts';
import { taskQueues } from '../../../src/platform/temporal/workflow-options.ts';
import { startWorkflowStarter } from '../../../src/platform/temporal/workflow-starter.ts';
import { openOperationsActivities } from '../../../src/worker/activities.ts';
import { TASK_KINDS } from '../../../src/worker/task-kinds.ts';
import { loadWorkflowBundle } from '../../../src/worker/workflow-bundle.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { seedFixtureAccounts, testEventIdHash, testSecretBox } from '../../support/test-accounts.ts';
import { createTestDatabase, drawIdsApart } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';

export const WABA = '900000000000101';

export type OperationsStack = {
  config: Config;
  /** As environment variables, for commands. */
  settings: Record<string, string>;
  database: Database;
  client: Client;
  taskQueue: string;
  /** Has workflows be started by this client from now on. */
  startWith(client: Client): Promise<void>;
  /** Starts a worker for the operations queue; they are stopped with the stack. */
  startWorker(): Promise<{ stop(): Promise<void> }>;
  stop(): Promise<void>;
};

/** The operations queue with its workflow starter on real servers; nobody attempts deliveries. */
export async function startOperationsStack(
  options: {
    maxOpenPerEndpoint?: number;
    mailSender?: MailSender;
    mailScheduleMs?: number[];
    withWorker?: boolean;
    logger?: Logger;
  } = {},
): Promise<OperationsStack> {
  const { withWorker = true, logger = silentLogger, ...limits } = options;
  const store = await createTestDatabase(20);
  await seedFixtureAccounts(store.database);
  await drawIdsApart(store.database);
  const settings = testSettings(store.url);
  const config = loadConfig(settings);
  const { connection, client } = await connectTemporal(config.temporal);
  await registerSearchAttributes(connection, config.temporal.namespace);
  const workflowBundle = await loadWorkflowBundle(silentLogger);
  const queues = taskQueues(config.temporal.taskQueuePrefix);
  const { database } = store;
  const objectStore = openObjectStore(config.objectStore);
  const encryptionKeys = parseEncryptionKeys(config.encryptionKeys);
  const tools = {
    database,
    objectStore,
    secretBox: testSecretBox,
    encryptionKeys,
    logger,
    mailSender: null,
    ...limits,
  };
  const activities = openOperationsActivities(tools);
  const startStarter = (reached: Client) =>
    startWorkflowStarter({
      database,
      client: reached,
      taskQueue: queues.deliveries,
      logger: silentLogger,
      eventIdHash: testEventIdHash(database),
      kinds: TASK_KINDS,
    });
  let starter = startStarter(client);
  const startWith = async (reached: Client) => {
    await starter.stop();
    starter = startStarter(reached);
  };
  const stops: (() => Promise<void>)[] = [];
  const startWorker = async () => {
    const workers = await Promise.all([
      Worker.create({ connection, workflowBundle, taskQueue: queues.deliveries }),
      Worker.create({ connection, taskQueue: queues.operations, activities, shutdownGraceTime: 500 }),
    ]);
    const running = Promise.all(workers.map((worker) => worker.run()));
    let stopping: Promise<unknown> | null = null;
    const stop = async () => {
      if (stopping === null) {
        for (const worker of workers) worker.shutdown();
        stopping = running;
      }
      await stopping;
    };
    stops.push(stop);
    return { stop };
  };
  if (withWorker) await startWorker();
  const stop = async () => {
    await starter.stop();
    await Promise.all(stops.map((end) => end()));
    objectStore.close();
    await connection.close();
    await store.close();
  };
  return { config, settings, database, client, taskQueue: queues.deliveries, startWith, startWorker, stop };
}
