import { availableParallelism, hostname } from 'node:os';
import type { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { reportUnreadableSecrets } from '../accounts/secret-keys.ts';
import type { Config } from '../config/config.ts';
import { type DatabasePool, openDatabase } from '../database/database.ts';
import { warnWhenNotDurable } from '../database/durability.ts';
import type { WorkerPeers } from '../database/worker-processes.ts';
import { wakeAllTasks } from '../database/workflow-tasks.ts';
import { makeWorkerMetrics, type WorkerMetrics } from '../metrics/worker-metrics.ts';
import { openObjectStore } from '../storage/object-store.ts';
import { taskQueues } from '../workflows/task-queues.ts';
import { listenToDatabase } from './database-listener.ts';
import { openDelivery } from './delivery-tools.ts';
import { startDispatcher } from './dispatch/dispatcher.ts';
import { startRetryStarter } from './dispatch/retry-starter.ts';
import { makeStartAllowance } from './dispatch/start-allowance.ts';
import { makeSessionStarter } from './dispatch/start-session.ts';
import { startSweeper } from './dispatch/sweeper.ts';
import { startEndpointKeeper } from './endpoint-keeper.ts';
import { watchEventLoop } from './event-loop-use.ts';
import { startHealthServer } from './health-server.ts';
import { startHousekeeping } from './housekeeping.ts';
import { type IntakeLoop, startIntake } from './intake/intake-loop.ts';
import { makeIntakeMemory } from './intake/intake-memory.ts';
import type { Logger } from './logger.ts';
import type { Loop } from './loop.ts';
import { openMediaActivities } from './media-activities.ts';
import { startNumberSchedule } from './number-schedule.ts';
import { openSendActivities } from './send-activities.ts';
import { connectTemporal } from './temporal-connection.ts';
import { openTemporalUpkeep, type TemporalUpkeep } from './temporal-upkeep.ts';
import { runTemporalWorkers } from './temporal-workers.ts';
import { workerOptions } from './worker-options.ts';
import { makeWorkerScrape } from './worker-scrape.ts';
import { loadWorkflowBundle } from './workflow-bundle.ts';
import { startWorkflowStarter } from './workflow-starter.ts';

export type RunningWorker = { stop(): Promise<void> };

const CONNECT_RETRY_MS = 1_000;

/** Share of the event loop's time above which another worker attempts a delivery sooner. */
const BUSY = 0.8;

/**
 * Starts intake at once, then, when Temporal answers, dispatcher and workflow workers; resolves when all run.
 * `stop` ends them in the order that loses no work: loops, workers, connections.
 */
export async function startWorker(config: Config, logger: Logger): Promise<RunningWorker> {
  let ready = false;
  const metrics = makeWorkerMetrics();
  const database = openDatabase({
    ...config.database,
    applicationName: 'heliograph-worker',
    fixedPlans: true,
  });
  const objectStore = openObjectStore(config.objectStore);
  const loops = new Map<string, Loop>();
  const delivery = openDelivery(config, {
    database,
    logger,
    worker: `${hostname()}:${process.pid}`,
    onAttempt: metrics.attempt,
    onSettled: () => loops.get('dispatcher')?.wake(),
    onRetries: () => loops.get('retryStarter')?.wake(),
  });
  const health = await startHealthServer({
    host: config.api.host,
    port: config.workerHealthPort,
    isReady: () => ready,
    makeScrape: () => makeWorkerScrape(metrics, { database, session: delivery.session }),
  });
  void reportUnreadableSecrets({ database, secretBox: delivery.secretBox }, logger);
  let peers: WorkerPeers = { count: 1, rank: 0, sessionElsewhere: false, isLeader: false };
  const eventLoopUse = watchEventLoop();
  // With others beside it, a busy process leaves deliveries to whoever has room.
  const directClaims = () =>
    peers.count > 1 && eventLoopUse() > BUSY ? null : delivery.session.directClaims();
  const intake = startIntake(
    { database, logger, directClaims, memory: makeIntakeMemory(), onBody: metrics.inboxBody },
    () => peers,
  );
  loops.set('intake', intake);
  loops.set(
    'housekeeping',
    startHousekeeping({ database, objectStore, logger, retentionDays: config.retentionDays }),
  );
  const listener = listen(config, { intake, loops, database, session: delivery.session, logger });

  void warnWhenNotDurable(database, logger);

  const { connection, upkeep } = await connectWhenUp(config, { database, logger });
  const workers = await runWorkers(config, { connection, upkeep, database, delivery, logger, metrics });
  const { client } = upkeep;
  const onPeers = (seen: WorkerPeers) => {
    peers = seen;
  };
  for (const [name, loop] of startLoops(config, { client, database, delivery, loops, logger, onPeers })) {
    loops.set(name, loop);
  }
  ready = true;
  logger.info('worker ready');
  return {
    stop: async () => {
      ready = false;
      delivery.stopClaiming();
      await listener.close();
      await Promise.all([...loops.values()].map((loop) => loop.stop()));
      await workers.stop();
      await delivery.close();
      await connection.close();
      await database.destroy();
      objectStore.close();
      await health.close();
    },
  };
}

type Delivery = ReturnType<typeof openDelivery>;

function listen(
  config: Config,
  parts: {
    intake: IntakeLoop;
    loops: ReadonlyMap<string, Loop>;
    database: DatabasePool;
    session: Delivery['session'];
    logger: Logger;
  },
) {
  const { intake, loops, database, session, logger } = parts;
  const wake = (name: string) => () => loops.get(name)?.wake();
  return listenToDatabase({
    url: config.database.url,
    handlers: {
      heliograph_inbox: (payload) => intake.notified(payload),
      heliograph_deliveries: () => (session.isActive() ? session.wake() : wake('dispatcher')()),
      heliograph_workflow_tasks: wake('workflowStarter'),
    },
    logger,
    onSilence: (sinceMs) => void database.cutConnections(sinceMs),
  });
}

async function runWorkers(
  config: Config,
  tools: {
    connection: NativeConnection;
    upkeep: TemporalUpkeep;
    database: DatabasePool;
    delivery: Delivery;
    logger: Logger;
    metrics: WorkerMetrics;
  },
) {
  const { connection, upkeep, database, delivery, logger, metrics } = tools;
  const shared = { database, secretBox: delivery.secretBox, logger };
  const media = openMediaActivities(config, shared, metrics);
  const sends = openSendActivities(config, shared, metrics);
  const workers = await runTemporalWorkers(
    connection,
    workerOptions({
      namespace: config.temporal.namespace,
      queues: taskQueues(config.temporal.taskQueuePrefix),
      workflowBundle: await loadWorkflowBundle(logger),
      activities: {
        ...delivery.activities,
        media: media.activities,
        orders: media.orderActivities,
        sends: sends.activities,
      },
    }),
    { logger, ensure: upkeep.ensure },
  );
  return {
    stop: async () => {
      await workers.stop();
      await media.close();
      await sends.close();
    },
  };
}

/** The loops that need Temporal. */
function startLoops(
  config: Config,
  parts: {
    client: Client;
    database: DatabasePool;
    delivery: Delivery;
    loops: ReadonlyMap<string, Loop>;
    logger: Logger;
    onPeers: (peers: WorkerPeers) => void;
  },
): [string, Loop][] {
  const { client, database, delivery, loops, logger, onPeers } = parts;
  const { session, limiter, leaseMs, retryLimits } = delivery;
  const queues = taskQueues(config.temporal.taskQueuePrefix);
  const tools = { database, client, logger, leaseMs, taskQueue: queues.deliveries };
  const keeper = startEndpointKeeper({ ...delivery, database, logger, onPeers, ...config.webhooks });
  const dispatcher = startDispatcher({
    ...tools,
    session,
    limiter,
    sessionStarter: makeSessionStarter(tools),
    allowance: config.delivery.workflows === 'always' ? null : makeStartAllowance(availableParallelism()),
    sessionElsewhere: keeper.sessionElsewhere,
  });
  const { blockLimitHours } = config.webhooks;
  const onReleased = () => loops.get('dispatcher')?.wake();
  return [
    ['endpointKeeper', keeper],
    ['dispatcher', dispatcher],
    ['retryStarter', startRetryStarter({ ...tools, retryLimits })],
    ['sweeper', startSweeper({ ...tools, blockLimitHours, onReleased })],
    ['workflowStarter', startWorkflowStarter(tools)],
    ['numberSchedule', startNumberSchedule(tools)],
  ];
}

/** Waits for Temporal for as long as it takes: nothing is lost meanwhile, so ending the process would help nobody. */
async function connectWhenUp(
  config: Config,
  { database, logger }: { database: DatabasePool; logger: Logger },
): Promise<{ connection: NativeConnection; upkeep: TemporalUpkeep }> {
  for (let tries = 0; ; tries += 1) {
    let connection: NativeConnection | null = null;
    try {
      connection = (await connectTemporal(config.temporal)).connection;
      const onRebuilt = () => wakeAllTasks(database);
      const upkeep = await openTemporalUpkeep(connection, config.temporal.namespace, { logger, onRebuilt });
      return { connection, upkeep };
    } catch (error) {
      await connection?.close();
      if (tries === 0) logger.warn({ err: error }, 'Temporal is away: waiting for it');
      await new Promise((resolve) => setTimeout(resolve, CONNECT_RETRY_MS));
    }
  }
}
