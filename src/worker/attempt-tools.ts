import { availableParallelism } from 'node:os';
import { type KeyRequestActivityTools, makeKeyRequestActivities } from '../activities/approve-api-key.ts';
import { makeDeliverEventActivities } from '../activities/deliver-event.ts';
import { makeDeliverSessionActivities } from '../activities/deliver-session.ts';
import { makeReplayActivities, type ReplayActivityTools } from '../activities/replay-deliveries.ts';
import { makeAlertActivities } from '../activities/send-endpoint-alert.ts';
import { leaseMsFor } from '../deliveries/attempt/attempt-delivery.ts';
import type { AttemptObserver } from '../deliveries/attempt/settle-attempts.ts';
import { makeEndpointHealth } from '../deliveries/breaker.ts';
import { recordWorkflow } from '../deliveries/delivery-log.ts';
import { EndpointLimiter } from '../deliveries/loop/attempt-limits.ts';
import { DeliveryLoop } from '../deliveries/loop/delivery-loop.ts';
import {
  makeCalmWatch,
  makeDeliveryWorkflows,
  makeRetryAllowance,
} from '../deliveries/loop/delivery-workflows.ts';
import { makeRecordGate } from '../deliveries/queue/settle.ts';
import { type HttpSender, makeHttpSender } from '../deliveries/sender/http-sender.ts';
import type { AlertActivityTools } from '../endpoints/alerts/attempt-alert.ts';
import type { Config } from '../platform/config/config.ts';
import { makeSecretBox, parseEncryptionKeys } from '../platform/crypto/secret-box.ts';
import { makeAddressGuard } from '../platform/http/outbound-url.ts';
import type { Logger } from '../platform/logger.ts';
import type { DatabasePool } from '../platform/postgres/database.ts';
import { isTransientError } from '../platform/postgres/error-class.ts';

/** Of them, what one endpoint may have open. */
const RETRY_WORKFLOWS_PER_ENDPOINT = 20;

/** Everything that attempts deliveries in this process, and the activities that do it for workflows. */
export function openDelivery(
  config: Config,
  tools: {
    database: DatabasePool;
    logger: Logger;
    /** Host and process. */
    worker: string;
    /** For metrics. */
    onAttempt: AttemptObserver;
  },
) {
  const { database, logger, worker, onAttempt } = tools;
  const { timeoutMs, retryScheduleMs } = config.webhooks;
  const sender = openSender(config);
  const secretBox = makeSecretBox(parseEncryptionKeys(config.encryptionKeys));
  const health = makeEndpointHealth();
  const limiter = new EndpointLimiter();
  const cores = availableParallelism();
  const calm = makeCalmWatch(cores);
  const retryAllowance = makeRetryAllowance(cores);
  const retryLimits = {
    perEndpoint: RETRY_WORKFLOWS_PER_ENDPOINT,
    overall: config.delivery.retryWorkflowsMax,
    takeStart: () => retryAllowance.take(),
  };
  const defaults = { timeoutMs, retryScheduleMs };
  const stopping = new AbortController();
  const onTrouble = (error: unknown) => {
    if (isTransientError(error)) logger.warn({ err: error }, 'the delivery loop waits and tries again');
    else
      logger.error({ err: error }, 'a delivery could not be attempted or recorded; its lease brings it back');
  };
  const gate = makeRecordGate({
    database,
    onShut: (error) => {
      const text = 'nothing is delivered while attempts cannot be recorded';
      if (isTransientError(error)) logger.warn({ err: error }, text);
      else logger.error({ err: error }, text);
    },
    onOpen: () => {
      logger.info('attempts can be recorded again');
      loop.wake();
    },
  });
  const settlement = { database, health, retryLimits, worker, onAttempt, gate, onTrouble };
  const attempt = { ...settlement, sender, limiter, secretBox, defaults };
  const workflows = makeDeliveryWorkflows({
    mode: config.delivery.workflows,
    calm,
    onHeadStart: (started) => void recordWorkflow(database, [started]).catch(onTrouble),
    onTrouble: (error) => logger.warn({ err: error }, 'workflows of deliveries cannot be started at present'),
  });
  const loop = new DeliveryLoop({ ...attempt, workflows });
  const leaseMs = leaseMsFor(timeoutMs);
  const join = (deliveryId: string) => loop.join(deliveryId);
  return {
    ...{ worker, secretBox, health, limiter, loop, workflows, leaseMs },
    activities: {
      deliver: makeDeliverEventActivities({ ...attempt, join, onSettled: () => loop.wake() }),
      session: makeDeliverSessionActivities({ loop, stopping: stopping.signal }),
      operations: openOperationsActivities({ database, sender, secretBox, timeoutMs, logger }),
    },
    /** How many processes share what is allowed to the installation, at least 1, and how many come before this one. */
    shareWith: ({ count, rank }: { count: number; rank: number }) => {
      limiter.shareWith(count, rank);
      for (const shared of [calm, retryAllowance]) shared.shareWith(count);
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

function openSender(config: Config): HttpSender {
  const { allowCidrs, allowHttp, connectTimeoutMs, timeoutMs } = config.webhooks;
  const guard = makeAddressGuard({ allowCidrs });
  return makeHttpSender({ guard, allowHttp, connectTimeoutMs, totalTimeoutMs: timeoutMs });
}

/** The activities for the task queue of operations: replays, endpoint alerts, key requests. They open nothing of their own. */
export function openOperationsActivities(
  tools: ReplayActivityTools & AlertActivityTools & KeyRequestActivityTools,
) {
  return {
    ...makeReplayActivities(tools),
    ...makeAlertActivities(tools),
    ...makeKeyRequestActivities(tools),
  };
}
