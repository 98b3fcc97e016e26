import { availableParallelism } from 'node:os';
import type { Config } from '../../platform/config/config.ts';
import { makeSecretBox, parseEncryptionKeys } from '../../platform/crypto/secret-box.ts';
import { makeAddressGuard } from '../../platform/http/outbound-url.ts';
import { leaseMsFor } from '../../platform/lease-clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { Loop, WorkWatch } from '../../platform/loop.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { isTransientError } from '../../platform/postgres/error-class.ts';
import type { UnusableNameObserver } from '../../platform/sender/guarded-connector.ts';
import { type HttpSender, makeHttpSender } from '../../platform/sender/http-sender.ts';
import { makeProxyRoute, type ProxyRoute } from '../../platform/sender/proxy-route.ts';
import type { taskQueues } from '../../platform/temporal/workflow-options.ts';
import { deliveryWorkflowId } from '../queue/claim.ts';
import { recordWorkflow } from '../queue/delivery-log.ts';
import { makeRecordGate, type RecordGate } from '../queue/settle.ts';
import type { AttemptObserver } from './attempt/settle-attempts.ts';
import { makeEndpointHealth } from './breaker.ts';
import { startBacklogReturn, startProber, startRetryRelease, startSweeper } from './dispatch/queue-upkeep.ts';
import { makeRunClient, type RunClientTools } from './dispatch/run-client.ts';
import { startRunUpkeep } from './dispatch/run-upkeep.ts';
import { startSessionWorkflow } from './dispatch/start-workflows.ts';
import { TroubleWatch } from './dispatch/trouble-watch.ts';
import { RUN_ROOM, type RunRoomSize } from './judge-outcome.ts';
import { EndpointLimiter } from './loop/attempt-limits.ts';
import { DeliveryLoop } from './loop/delivery-loop.ts';
import { DeliveryRuns } from './loop/delivery-runs.ts';
import { startEndpointKeeper } from './loop/endpoint-keeper.ts';
import { startHeadParking } from './loop/head-parking.ts';
import { type CalmWatch, makeCalmWatch, makeFailureAllowance } from './loop/run-allowance.ts';

/** Which deliveries may have a run, where a test needs another bound than the product's. */
export type RunBounds = { room?: RunRoomSize; calm?: CalmWatch };

type DeliveryTools = {
  database: Database;
  logger: Logger;
  worker: string;
  onAttempt: AttemptObserver;
  runBounds?: RunBounds | undefined;
};

function openRuns({ database, logger }: DeliveryTools, calm: CalmWatch, onTrouble: (error: unknown) => void) {
  return new DeliveryRuns({
    calm,
    onShown: (label) =>
      void recordWorkflow(database, [{ ...label, workflowId: deliveryWorkflowId(label) }]).catch(onTrouble),
    onTrouble: (error) =>
      logger.warn(
        { err: error },
        'no workflow runs of deliveries are started for a second: deliveries continue without them, and Temporal does not show these',
      ),
  });
}

/** Everything that attempts deliveries in this process, for its loops and for the activities of workflows. */
export function openDelivery(config: Config, tools: DeliveryTools) {
  const { database, logger, worker, onAttempt } = tools;
  const { timeoutMs, retryScheduleMs } = config.webhooks;
  const route = openRoute(config, logger, () => loop.wake());
  const sender = openSender(config, logger, route);
  const secretBox = makeSecretBox(parseEncryptionKeys(config.encryptionKeys));
  const health = makeEndpointHealth();
  const { limiter, calm, runLimits, shareWith } = openLimits(() => runs.mayStart(), tools.runBounds);
  const stopping = new AbortController();
  const gate = whileProxyWorks(
    openGate(database, logger, () => loop.wake()),
    route,
  );
  const onTrouble = logTrouble(logger, {
    transient: 'the delivery loop waits and tries again',
    defect: 'a delivery could not be attempted or recorded; its lease brings it back',
  });
  const troubleWatch = new TroubleWatch();
  const observer: AttemptObserver = (attempt, outcome) => {
    onAttempt(attempt, outcome);
    troubleWatch.attempted(attempt, outcome);
  };
  const settlement = { database, health, runLimits, worker, onAttempt: observer, gate, onTrouble };
  const runs = openRuns(tools, calm, onTrouble);
  const defaults = { timeoutMs, retryScheduleMs, workflows: config.delivery.workflows };
  const loop = new DeliveryLoop({ ...settlement, logger, sender, limiter, secretBox, defaults, runs });
  const leaseMs = leaseMsFor(timeoutMs);
  return {
    worker,
    secretBox,
    sender,
    health,
    limiter,
    loop,
    runs,
    troubleWatch,
    leaseMs,
    shareWith,
    proxyTrouble: () => route?.trouble() ?? null,
    /** Aborted when nothing more is claimed. */
    stopping: stopping.signal,
    stopClaiming: () => {
      stopping.abort();
      loop.stopClaiming();
    },
    close: async () => {
      await loop.drained();
      await sender.close();
    },
  };
}

export type Delivery = ReturnType<typeof openDelivery>;

/** Starts the loops that deliver with or without Temporal. */
export function startDeliveryUpkeep(
  config: Config,
  delivery: Delivery,
  tools: {
    database: Database;
    logger: Logger;
    isLeader: () => boolean;
    standsAside: () => boolean;
    workWatch: WorkWatch;
  },
): Loop[] {
  const { loop, runs, troubleWatch } = delivery;
  const { blockLimitHours } = config.webhooks;
  const upkeep = { ...tools, loop, blockLimitHours, isTemporalUp: () => runs.isUp() };
  return [
    startEndpointKeeper({ ...delivery, ...tools, ...config.webhooks }),
    startRetryRelease(upkeep),
    startSweeper(upkeep),
    startHeadParking({ ...upkeep, troubleWatch }),
    startBacklogReturn(upkeep),
    startProber(upkeep),
  ];
}

export function startTemporalDeliveryLoops(
  config: Config,
  { loop, runs, worker, leaseMs, troubleWatch }: Delivery,
  given: Omit<RunClientTools, 'leaseMs' | 'publicUrl'> & {
    database: Database;
    isLeader: () => boolean;
    queues: ReturnType<typeof taskQueues>;
  },
): Loop[] {
  const { client, logger } = given;
  const tools = { ...given, leaseMs, publicUrl: config.api.publicUrl };
  const runClient = makeRunClient(tools);
  runs.connect(runClient);
  const queues = { deliveries: given.queues.deliveries, session: given.queues.session(worker) };
  return [
    startSessionWorkflow({ client, logger, loop, worker, queues }),
    startRunUpkeep({ ...tools, runs: runClient }),
    troubleWatch.start(tools),
  ];
}

/** The bounds of attempts and of starts of runs; `shareWith` notes how many processes share it, and the rank of this one. */
function openLimits(mayStart: () => boolean, bounds: RunBounds = {}) {
  const limiter = new EndpointLimiter();
  const cores = availableParallelism();
  const { room = RUN_ROOM, calm = makeCalmWatch(cores) } = bounds;
  const failures = makeFailureAllowance(cores);
  const runLimits = {
    ...room,
    mayStart: () => mayStart() && failures.hasStart(),
    takeStart: failures.take,
  };
  const shareWith = ({ count, rank }: { count: number; rank: number }) => {
    limiter.shareWith(count, rank);
    for (const shared of [calm, failures]) shared.shareWith(count);
  };
  return { limiter, calm, runLimits, shareWith };
}

function openGate(database: Database, logger: Logger, wake: () => void): RecordGate {
  const text = 'nothing is delivered while attempts cannot be recorded';
  return makeRecordGate({
    database,
    onShut: logTrouble(logger, { transient: text, defect: text }),
    onOpen: () => {
      logger.info('attempts can be recorded again');
      wake();
    },
  });
}

/** An error that passes by itself is a warning; any other needs an operator. */
function logTrouble(logger: Logger, texts: { transient: string; defect: string }) {
  return (error: unknown) => {
    if (isTransientError(error)) logger.warn({ err: error }, texts.transient);
    else logger.error({ err: error }, texts.defect);
  };
}

/** Watches the egress proxy; undefined where there is none. */
function openRoute(
  { webhooks: { proxy } }: Config,
  logger: Logger,
  wake: () => void,
): ProxyRoute | undefined {
  if (proxy === null) return undefined;
  return makeProxyRoute(proxy, {
    onDown: (trouble) =>
      logger.error({ reason: trouble }, 'nothing is delivered until the egress proxy works'),
    onUp: () => {
      logger.info('the egress proxy works again');
      wake();
    },
  });
}

/** Attempts while the proxy is down would only fail: deliveries wait as they are. */
function whileProxyWorks(gate: RecordGate, route: ProxyRoute | undefined): RecordGate {
  if (route === undefined) return gate;
  return { ...gate, isOpen: () => gate.isOpen() && route.trouble() === null };
}

function openSender(config: Config, logger: Logger, route: ProxyRoute | undefined): HttpSender {
  const { allowHttp, connectTimeoutMs, timeoutMs } = config.webhooks;
  const guard = makeAddressGuard(config.webhooks);
  const onUnusableName: UnusableNameObserver = (cause) =>
    logger.info(cause, 'the host of a webhook URL has no allowed address');
  const limits = { connectTimeoutMs, totalTimeoutMs: timeoutMs };
  return makeHttpSender({ guard, allowHttp, route, ...limits, onUnusableName });
}
