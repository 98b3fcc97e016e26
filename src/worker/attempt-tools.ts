import { availableParallelism } from 'node:os';
import { type KeyRequestActivityTools, makeKeyRequestActivities } from '../activities/approve-api-key.ts';
import { makeDeliverEventActivities } from '../activities/deliver-event.ts';
import { makeDeliverSessionActivities } from '../activities/deliver-session.ts';
import { makeEndpointTroubleActivities } from '../activities/endpoint-trouble.ts';
import { type EraseActivityTools, makeEraseActivities } from '../activities/erase.ts';
import { makeReplayActivities, type ReplayActivityTools } from '../activities/replay-deliveries.ts';
import { makeAlertActivities } from '../activities/send-endpoint-alert.ts';
import { makeMailActivities } from '../activities/send-mail.ts';
import type { AlertActivityTools } from '../alerts/attempt-alert.ts';
import { leaseMsFor } from '../deliveries/attempt/lease-clock.ts';
import type { AttemptObserver } from '../deliveries/attempt/settle-attempts.ts';
import { makeEndpointHealth } from '../deliveries/breaker.ts';
import { TroubleWatch } from '../deliveries/dispatch/trouble-watch.ts';
import { EndpointLimiter } from '../deliveries/loop/attempt-limits.ts';
import { DeliveryLoop } from '../deliveries/loop/delivery-loop.ts';
import { DeliveryRuns } from '../deliveries/loop/delivery-runs.ts';
import { makeCalmWatch, makeFailureAllowance } from '../deliveries/loop/run-allowance.ts';
import type { MailActivityTools } from '../mail/attempt-mail.ts';
import { makeMailSender } from '../mail/smtp.ts';
import type { Config } from '../platform/config/config.ts';
import { makeSecretBox, parseEncryptionKeys } from '../platform/crypto/secret-box.ts';
import { makeAddressGuard } from '../platform/http/outbound-url.ts';
import type { Logger } from '../platform/logger.ts';
import type { ObjectStore } from '../platform/object-store/object-store.ts';
import type { Database, DatabasePool } from '../platform/postgres/database.ts';
import { isTransientError } from '../platform/postgres/error-class.ts';
import { type HttpSender, makeHttpSender } from '../platform/sender/http-sender.ts';
import type { UnusableNameObserver } from '../platform/sender/origin-pools.ts';
import { makeProxyRoute, type ProxyRoute } from '../platform/sender/proxy-route.ts';
import { deliveryWorkflowId } from '../queue/claim.ts';
import { recordWorkflow } from '../queue/delivery-log.ts';
import { makeRecordGate, type RecordGate } from '../queue/settle.ts';

type DeliveryTools = {
  database: DatabasePool;
  /** For activities. */
  upkeepDatabase: DatabasePool;
  objectStore: ObjectStore;
  logger: Logger;
  /** Host and process. */
  worker: string;
  /** For metrics. */
  onAttempt: AttemptObserver;
};

/** Everything that attempts deliveries in this process, and the activities that do it for workflows. */
export function openDelivery(config: Config, tools: DeliveryTools) {
  const { database, upkeepDatabase, objectStore, logger, worker, onAttempt } = tools;
  const { timeoutMs, retryScheduleMs } = config.webhooks;
  const route = openRoute(config, logger, () => loop.wake());
  const sender = openSender(config, logger, route);
  const encryptionKeys = parseEncryptionKeys(config.encryptionKeys);
  const secretBox = makeSecretBox(encryptionKeys);
  const health = makeEndpointHealth();
  const { limiter, calm, runLimits, shareWith } = openLimits(config, () => runs.mayStart());
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
  const runs = new DeliveryRuns({
    calm,
    onStarted: (label) =>
      void recordWorkflow(database, [{ ...label, workflowId: deliveryWorkflowId(label) }]).catch(onTrouble),
    onTrouble: (error) =>
      logger.warn({ err: error }, 'workflow runs of deliveries cannot be started at present'),
  });
  const defaults = { timeoutMs, retryScheduleMs, workflows: config.delivery.workflows };
  const loop = new DeliveryLoop({ ...settlement, logger, sender, limiter, secretBox, defaults, runs });
  const leaseMs = leaseMsFor(timeoutMs);
  return {
    ...{ worker, secretBox, health, limiter, loop, runs, troubleWatch, leaseMs, shareWith },
    proxyTrouble: () => route?.trouble() ?? null,
    activities: {
      deliver: {
        ...makeDeliverEventActivities({ database: upkeepDatabase, loop, runs }),
        ...makeEndpointTroubleActivities({ database: upkeepDatabase, publicUrl: config.api.publicUrl }),
      },
      session: makeDeliverSessionActivities({ loop, stopping: stopping.signal }),
      operations: openOperationsActivities({
        ...{ database: upkeepDatabase, objectStore, sender, secretBox, encryptionKeys, timeoutMs, logger },
        mailSender: config.mail.smtpUrl === '' ? null : makeMailSender(config.mail),
      }),
    },
    /** Nothing more is claimed; what is under way goes on. */
    stopClaiming: () => {
      stopping.abort();
      loop.stopClaiming();
    },
    /** Waits for attempts under way. */
    close: async () => {
      await loop.drained();
      await sender.close();
    },
  };
}

/** What bounds attempts and starts of runs; `shareWith` tells how many processes share it, and the rank of this one. */
function openLimits(config: Config, mayStart: () => boolean) {
  const limiter = new EndpointLimiter();
  const cores = availableParallelism();
  const calm = makeCalmWatch(cores);
  const failures = makeFailureAllowance(cores);
  const runLimits = {
    perEndpoint: config.delivery.retryWorkflowsPerEndpoint,
    overall: config.delivery.retryWorkflowsMax,
    takeStart: (isFirst: boolean) => mayStart() && failures.take(isFirst),
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

/** What passes by itself is a warning; anything else needs an operator. */
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

/** What is sent while the proxy is down would only fail: deliveries wait as they are. */
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

/** The activities for the task queue of operations: replays, erasures, alerts, e-mails, key requests. They open nothing of their own. */
export function openOperationsActivities(
  tools: ReplayActivityTools &
    AlertActivityTools &
    KeyRequestActivityTools &
    EraseActivityTools &
    MailActivityTools,
) {
  return {
    ...makeEraseActivities(tools),
    ...makeReplayActivities(tools),
    ...makeAlertActivities(tools),
    ...makeKeyRequestActivities(tools),
    ...makeMailActivities(tools),
  };
}
