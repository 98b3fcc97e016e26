import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import type { AttemptObserver } from '../engine/deliveries/attempt/settle-attempts.ts';
import {
  openDelivery,
  type RunBounds,
  startDeliveryUpkeep,
  startTemporalDeliveryLoops,
} from '../engine/deliveries/worker.ts';
import { startWindowLoop } from '../features/messages/conversations/closing-windows.ts';
import { startOrderRelease } from '../features/messages/orders/release-order.ts';
import type { IntakeLoop } from '../ingest/intake/intake-loop.ts';
import type { KeepAtOnce } from '../ingest/intake/store-bodies.ts';
import { openIntake } from '../ingest/intake/worker.ts';
import { startAlertKeeper } from '../ops/alerts/alert-keeper.ts';
import { startHookSender } from '../ops/alerts/operations-sender.ts';
import { reportUnreadableSecrets } from '../ops/secrets/secret-keys.ts';
import type { Config } from '../platform/config/config.ts';
import { openEventIdHash } from '../platform/crypto/installation-secret.ts';
import type { Logger } from '../platform/logger.ts';
import type { Loop } from '../platform/loop.ts';
import type { LoopName } from '../platform/loops.ts';
import { type ObjectStore, openObjectStore } from '../platform/object-store/object-store.ts';
import { listenToDatabase } from '../platform/postgres/connection.ts';
import type { DatabasePool } from '../platform/postgres/database.ts';
import { waitForSchema } from '../platform/postgres/schema-state.ts';
import { warnWhenNotDurable } from '../platform/postgres/server-checks.ts';
import { standsAside, type WorkerPeers } from '../platform/postgres/worker-processes.ts';
import {
  connectTemporal,
  openTemporalUpkeep,
  SearchAttributesMissingError,
  type TemporalUpkeep,
} from '../platform/temporal/worker-connection.ts';
import { taskQueues } from '../platform/temporal/workflow-options.ts';
import { startWorkflowStarter } from '../platform/temporal/workflow-starter.ts';
import { wakeAllTasks } from '../platform/temporal/workflow-tasks.ts';
import { makeWorkWatch } from '../platform/work-watch.ts';
import { openActivities } from './activities.ts';
import { startHealthServer, type WorkerHealth, watchHealth } from './health.ts';
import { startHeartbeat } from './heartbeat.ts';
import { startHousekeeping } from './housekeeping.ts';
import { startFiguresKeeper } from './metrics/shared-figures.ts';
import {
  leavesToOthers,
  makeWorkerMetrics,
  noteAttempt,
  noteStart,
  watchLoad,
} from './metrics/worker-metrics.ts';
import { makeWorkerScrape } from './metrics/worker-scrape.ts';
import { startNumberSchedule } from './number-schedule.ts';
import { openDatabases } from './open-databases.ts';
import { rehearse } from './rehearsal.ts';
import { TASK_KINDS } from './task-kinds.ts';
import { runTemporalWorkers, workerOptions } from './temporal-workers.ts';
import { loadWorkflowBundle } from './workflow-bundle.ts';

export type RunningWorker = { stop(): Promise<void> };

export type WorkerOptions = {
  /** Given what ingests bodies while they are kept, for an ingress in the same process. */
  onDirectIntake?: ((directIntake: KeepAtOnce) => void) | undefined;
  sdkMetrics?: (() => Promise<string>) | undefined;
  /** Given the health of this worker, for an API in the same process. */
  onHealth?: ((health: () => Promise<WorkerHealth>) => void) | undefined;
  /** For tests. */
  runBounds?: RunBounds | undefined;
};

const CONNECT_RETRY_MS = 1_000;

/** Of what waits for an administrator, the log speaks every ten minutes. */
const REMIND_EVERY_TRIES = 600;

/** Of the time to stop, what activities get to end by themselves; the rest is for cancelling and closing. */
const GRACE_SHARE = 2 / 3;

const LOOPS_SHARE = 1 / 10;

/**
 * Starts intake and the delivery loop at once, then, when Temporal is up, all that needs it; resolves when all run.
 * `stop` ends them in the order that loses no work: loops and workers, deliveries, connections.
 */
export async function startWorker(
  config: Config,
  logger: Logger,
  { onDirectIntake, sdkMetrics, onHealth, runBounds }: WorkerOptions = {},
): Promise<RunningWorker> {
  const { objectStore, ...tools } = openParts(config, logger, runBounds);
  const { database, upkeepDatabase, delivery, metrics } = tools;
  const { secretBox } = delivery;
  const loops: Loop[] = [];
  const watch = watchHealth({ database, logger, loops, delivery: delivery.loop });
  onHealth?.(watch.health);
  const scraped = { config, database: upkeepDatabase, pools: [database, upkeepDatabase], watch, sdkMetrics };
  const health = await startHealthServer({
    host: config.api.host,
    port: config.workerHealthPort,
    health: watch.health,
    makeScrape: () => makeWorkerScrape(metrics, { ...scraped, loop: delivery.loop, runs: delivery.runs }),
  });
  await prepareDatabase({ database, secretBox }, logger);
  void reportUnreadableSecrets({ database: upkeepDatabase, secretBox }, logger);
  const wakeLoops = () => {
    for (const loop of [...loops, delivery.loop]) loop.wake();
  };
  const { intake, onPeers, peers } = startIntakeLoop(tools, wakeLoops, onDirectIntake);
  const { retentionDays } = config;
  const housekeeping = startHousekeeping({ database: upkeepDatabase, objectStore, logger, retentionDays });
  const { workWatch } = tools;
  const alertKeeper = startAlertKeeper({ config, secretBox, database: upkeepDatabase, logger, workWatch });
  loops.push(intake, housekeeping, alertKeeper, ...startDeliveryLoops(config, { ...tools, onPeers, peers }));
  const listener = listen(config, { ...tools, intake, loops });
  watch.listens(listener);
  void warnWhenNotDurable(upkeepDatabase, logger);
  const { connection, upkeep } = await connectWhenUp(config, tools);
  const workers = await runWorkers(config, { ...tools, objectStore, connection, upkeep });
  const { client } = upkeep;
  loops.push(
    startStarter(config, { ...tools, client, peers }),
    ...startTemporalLoops(config, { ...tools, client, peers }),
    watch.started({ upkeep, workers }),
  );
  logger.info('worker ready');
  return {
    stop: async () => {
      watch.stops();
      delivery.stopClaiming();
      await listener.close();
      const loopsEnd = Promise.all(loops.map((loop) => loop.stop()));
      const waited = sleep(config.workerDrainTimeoutMs * LOOPS_SHARE, undefined, { ref: false });
      await Promise.all([workers.stop(), Promise.race([loopsEnd, waited])]);
      await delivery.close();
      // The SDK refuses while a worker that hangs still holds it.
      await connection.close().catch((error) => logger.debug({ err: error }, 'Temporal stays connected'));
      for (const pool of [database, upkeepDatabase]) await closePool(pool);
      objectStore.close();
      await health.close();
    },
  };
}

/** A turn that still waits for the database is undone, and done again by another process. */
async function closePool(pool: DatabasePool): Promise<void> {
  await pool.cutConnections(performance.now());
  await pool.destroy();
}

type Tools = Omit<ReturnType<typeof openParts>, 'objectStore'>;

function openParts(config: Config, logger: Logger, runBounds: RunBounds | undefined) {
  const metrics = makeWorkerMetrics();
  const { database, upkeepDatabase } = openDatabases(config);
  const worker = `${hostname()}:${process.pid}`;
  const objectStore = openObjectStore(config.objectStore);
  const onAttempt: AttemptObserver = (attempt, outcome) => {
    metrics.attempt(attempt, outcome);
    noteAttempt(attempt, outcome);
  };
  const delivery = openDelivery(config, { database, logger, worker, onAttempt, runBounds });
  return { database, upkeepDatabase, delivery, logger, metrics, objectStore, workWatch: makeWorkWatch() };
}

/** Ingests bodies and claims what comes of them, unless other workers of the installation have more room. */
function startIntakeLoop(
  { database, delivery, logger, metrics, workWatch }: Tools,
  onLead: () => void,
  onDirectIntake: WorkerOptions['onDirectIntake'],
) {
  let peers: WorkerPeers = { count: 1, rank: 0, isElsewhere: false, isLeader: false };
  const load = watchLoad();
  const directClaims = () => (leavesToOthers(peers, load()) ? null : delivery.loop.directClaims());
  const { intake, directIntake } = openIntake(
    { database, logger, directClaims, onBody: metrics.inboxBody },
    () => peers,
    workWatch,
  );
  onDirectIntake?.(directIntake);
  const onPeers = (seen: WorkerPeers) => {
    const leadsNow = seen.isLeader && !peers.isLeader;
    peers = seen;
    delivery.shareWith(seen);
    if (leadsNow) onLead();
  };
  return { intake, onPeers, peers: () => peers };
}

/** Real deliveries wait for it no longer than this. */
const REHEARSE_WITHIN_MS = 2_000;

async function prepareDatabase(tools: Parameters<typeof rehearse>[0], logger: Logger): Promise<void> {
  await waitForSchema(tools.database, logger);
  try {
    await Promise.race([rehearse(tools), sleep(REHEARSE_WITHIN_MS, undefined, { ref: false })]);
    // Opens the connection for notifications too; to look once more does no harm.
    tools.database.notify('heliograph_deliveries');
  } catch (error) {
    logger.debug({ err: error }, 'the rehearsal failed: the first deliveries are slower');
  }
}

/** `loops`: as many as run by then; those that need Temporal are added when it is up. */
function listen(config: Config, parts: Tools & { intake: IntakeLoop; loops: readonly Loop[] }) {
  const { intake, loops, database, upkeepDatabase, delivery, logger } = parts;
  const wake = (...names: LoopName[]) => {
    for (const loop of loops) if (names.includes(loop.name)) loop.wake();
  };
  const listener = listenToDatabase({
    url: config.database.url,
    directUrl: config.database.directUrl,
    applicationName: 'heliograph-listener',
    handlers: {
      heliograph_inbox: (payload) => intake.notified(payload),
      heliograph_deliveries: () => delivery.loop.wake(),
      heliograph_endpoints: (endpointId) => {
        delivery.troubleWatch.changed(endpointId);
        wake('endpoint-keeper', 'alert-keeper');
      },
      heliograph_workflow_tasks: () => wake('workflow-starter'),
    },
    logger,
    onSilence: (sinceMs) => {
      for (const pool of [database, upkeepDatabase]) void pool.cutConnections(sinceMs);
    },
  });
  listener.open();
  return listener;
}

async function runWorkers(
  config: Config,
  tools: Tools & { connection: NativeConnection; upkeep: TemporalUpkeep; objectStore: ObjectStore },
) {
  const { connection, upkeep, delivery, logger } = tools;
  const { activities, close } = openActivities(config, { ...tools, database: tools.upkeepDatabase });
  const workers = await runTemporalWorkers(
    workerOptions({
      namespace: config.temporal.namespace,
      queues: taskQueues(config.temporal.taskQueuePrefix),
      worker: delivery.worker,
      workflowBundle: await loadWorkflowBundle(logger),
      activities,
    }),
    {
      connection,
      logger,
      ensure: upkeep.ensure,
      connect: async () => (await connectTemporal(config.temporal)).connection,
      graceMs: config.workerDrainTimeoutMs * GRACE_SHARE,
    },
  );
  return {
    deafMs: workers.deafMs,
    stop: async () => {
      await workers.stop();
      await close();
    },
  };
}

function startDeliveryLoops(
  config: Config,
  parts: Tools & { onPeers: (peers: WorkerPeers) => void; peers: () => WorkerPeers },
): Loop[] {
  const { database, upkeepDatabase, delivery, logger, onPeers, peers, workWatch } = parts;
  const { loop, secretBox } = delivery;
  const isLeader = () => peers().isLeader;
  const isAside = () => standsAside(peers());
  const upkeep = { database: upkeepDatabase, logger, isLeader };
  loop.start(workWatch, isAside);
  return [
    startHeartbeat({ ...delivery, database, logger, onPeers }),
    ...startDeliveryUpkeep(config, delivery, { database, logger, isLeader, standsAside: isAside, workWatch }),
    startFiguresKeeper(upkeep),
    startWindowLoop(upkeep),
    startOrderRelease(config, { ...upkeep, secretBox, workWatch }),
    startHookSender({
      ...delivery,
      ...config.webhooks,
      database: upkeepDatabase,
      logger,
      standsAside: isAside,
      workWatch,
    }),
    workWatch.start({ database, logger, standsAside: isAside }),
  ];
}

type TemporalTools = Tools & { client: Client };

function temporalTools(
  config: Config,
  { client, upkeepDatabase: database, delivery, logger }: TemporalTools,
) {
  const queues = taskQueues(config.temporal.taskQueuePrefix);
  const eventIdHash = openEventIdHash({ database, secretBox: delivery.secretBox });
  return { database, client, logger, eventIdHash, queues, taskQueue: queues.deliveries };
}

function startStarter(config: Config, parts: TemporalTools & { peers: () => WorkerPeers }): Loop {
  const isAside = () => standsAside(parts.peers());
  const { workWatch } = parts;
  return startWorkflowStarter({
    ...temporalTools(config, parts),
    kinds: TASK_KINDS,
    standsAside: isAside,
    workWatch,
  });
}

function startTemporalLoops(config: Config, parts: TemporalTools & { peers: () => WorkerPeers }): Loop[] {
  const tools = { ...temporalTools(config, parts), isLeader: () => parts.peers().isLeader };
  return [
    ...startTemporalDeliveryLoops(config, parts.delivery, { ...tools, onStart: noteStart }),
    startNumberSchedule(tools),
  ];
}

/** Waits for Temporal for as long as it takes: nothing is lost meanwhile, so ending the process would not help. */
async function connectWhenUp(
  config: Config,
  { upkeepDatabase, delivery, logger }: Tools,
): Promise<{ connection: NativeConnection; upkeep: TemporalUpkeep }> {
  for (let tries = 0; ; tries += 1) {
    let connection: NativeConnection | null = null;
    try {
      connection = (await connectTemporal(config.temporal)).connection;
      const onRebuilt = () => wakeAllTasks(upkeepDatabase).then(() => delivery.troubleWatch.lost());
      const upkeep = await openTemporalUpkeep(connection, config.temporal.namespace, { logger, onRebuilt });
      return { connection, upkeep };
    } catch (error) {
      await connection?.close();
      if (error instanceof SearchAttributesMissingError) {
        if (tries % REMIND_EVERY_TRIES === 0) logger.error(error.message);
      } else if (tries === 0) logger.warn({ err: error }, 'Temporal is away: waiting for it');
      await new Promise((resolve) => setTimeout(resolve, CONNECT_RETRY_MS));
    }
  }
}
