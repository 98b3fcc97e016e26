import { hostname } from 'node:os';
import type { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { makeDeliverEventActivities } from '../activities/deliver-event/activities.ts';
import type { Config } from '../config/config.ts';
import { openDatabase } from '../database/database.ts';
import { makeSecretBox, parseEncryptionKeys } from '../domain/secret-box.ts';
import { makeAddressGuard } from '../webhooks/address-guard.ts';
import { leaseMsFor } from '../webhooks/delivery-attempt.ts';
import { makeHttpSender } from '../webhooks/http-sender.ts';
import { taskQueues } from '../workflows/task-queues.ts';
import { listenToDatabase } from './database-listener.ts';
import { startDispatcher, startSweeper } from './dispatch/dispatcher.ts';
import { startHealthServer } from './health-server.ts';
import { startHousekeeping } from './housekeeping.ts';
import { startIntake } from './intake/intake-loop.ts';
import type { Logger } from './logger.ts';
import type { Loop } from './loop.ts';
import { openMediaActivities } from './media-activities.ts';
import { connectTemporal, registerSearchAttributes } from './temporal-connection.ts';
import { runTemporalWorkers } from './temporal-workers.ts';
import { workerOptions } from './worker-options.ts';
import { loadWorkflowBundle } from './workflow-bundle.ts';
import { startWorkflowStarter } from './workflow-starter.ts';

export type RunningWorker = { stop(): Promise<void> };

const CONNECT_RETRY_MS = 1_000;

/**
 * Starts intake at once, then, when Temporal answers, dispatcher and workflow workers; resolves when all run.
 * `stop` ends them in the order that loses no work: loops, workers, connections.
 */
export async function startWorker(config: Config, logger: Logger): Promise<RunningWorker> {
  let ready = false;
  const health = await startHealthServer({
    host: config.api.host,
    port: config.workerHealthPort,
    isReady: () => ready,
  });
  const database = openDatabase({ ...config.database, applicationName: 'heliograph-worker' });
  const loops: Record<string, Loop> = {
    heliograph_inbox: startIntake(database, logger),
    housekeeping: startHousekeeping(database, logger),
  };
  const wakers = ['heliograph_inbox', 'heliograph_deliveries', 'heliograph_workflow_tasks'].map(
    (channel) => [channel, () => loops[channel]?.wake()] as const,
  );
  const listener = listenToDatabase(config.database.url, Object.fromEntries(wakers), logger);

  const { connection, client } = await connectWhenUp(config, logger);
  const sender = makeSender(config);
  const queues = taskQueues(config.temporal.taskQueuePrefix);
  const secretBox = makeSecretBox(parseEncryptionKeys(config.encryptionKeys));
  const deliver = makeDeliverEventActivities({
    database,
    sender,
    secretBox,
    retryScheduleMs: config.webhooks.retryScheduleMs,
    timeoutMs: config.webhooks.timeoutMs,
    worker: `${hostname()}:${process.pid}`,
    onSettled: () => loops.heliograph_deliveries?.wake(),
  });
  const media = openMediaActivities(config, { database, secretBox, logger });
  const workflowBundle = await loadWorkflowBundle(logger);
  const workers = await runTemporalWorkers(
    connection,
    workerOptions({ namespace: config.temporal.namespace, queues, workflowBundle, deliver, media }),
    logger,
  );
  const tools = { database, client, logger, leaseMs: leaseMsFor(config.webhooks.timeoutMs) };
  loops.heliograph_deliveries = startDispatcher({ ...tools, taskQueue: queues.deliveries });
  loops.sweeper = startSweeper({ ...tools, taskQueue: queues.deliveries });
  loops.heliograph_workflow_tasks = startWorkflowStarter({ ...tools, queues });
  ready = true;
  logger.info('worker ready');
  return {
    stop: async () => {
      ready = false;
      await listener.close();
      await Promise.all(Object.values(loops).map((loop) => loop.stop()));
      await workers.stop();
      await Promise.all([sender.close(), media.close()]);
      await connection.close();
      await database.destroy();
      await health.close();
    },
  };
}

function makeSender(config: Config) {
  const { allowCidrs, allowHttp, connectTimeoutMs, timeoutMs } = config.webhooks;
  const guard = makeAddressGuard({ allowCidrs });
  return makeHttpSender({ guard, allowHttp, connectTimeoutMs, totalTimeoutMs: timeoutMs });
}

/** Waits for Temporal for as long as it takes: nothing is lost meanwhile, so ending the process would help nobody. */
async function connectWhenUp(
  config: Config,
  logger: Logger,
): Promise<{ connection: NativeConnection; client: Client }> {
  for (let tries = 0; ; tries += 1) {
    let connected: Awaited<ReturnType<typeof connectTemporal>> | null = null;
    try {
      connected = await connectTemporal(config.temporal);
      await registerSearchAttributes(connected.connection, config.temporal.namespace);
      return connected;
    } catch (error) {
      await connected?.connection.close();
      if (tries === 0) logger.warn({ err: error }, 'Temporal is away: waiting for it');
      await new Promise((resolve) => setTimeout(resolve, CONNECT_RETRY_MS));
    }
  }
}
