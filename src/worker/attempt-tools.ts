import { availableParallelism } from 'node:os';
import { type KeyRequestActivityTools, makeKeyRequestActivities } from '../activities/approve-api-key.ts';
import { makeDeliverEventActivities } from '../activities/deliver-event.ts';
import { makeDeliverSessionActivities } from '../activities/deliver-session.ts';
import { type EraseActivityTools, makeEraseActivities } from '../activities/erase.ts';
import { makeReplayActivities, type ReplayActivityTools } from '../activities/replay-deliveries.ts';
import { makeAlertActivities } from '../activities/send-endpoint-alert.ts';
import { makeMailActivities } from '../activities/send-mail.ts';
import type { AlertActivityTools } from '../alerts/attempt-alert.ts';
import { leaseMsFor } from '../deliveries/attempt/attempt-delivery.ts';
import type { AttemptObserver } from '../deliveries/attempt/settle-attempts.ts';
import { recordWorkflow } from '../deliveries/delivery-log.ts';
import { makeEndpointHealth } from '../deliveries/judge-outcome.ts';
import { EndpointLimiter } from '../deliveries/loop/attempt-limits.ts';
import { DeliveryLoop } from '../deliveries/loop/delivery-loop.ts';
import {
  DeliveryWorkflows,
  makeCalmWatch,
  makeRetryAllowance,
} from '../deliveries/loop/delivery-workflows.ts';
import { makeRecordGate, type RecordGate } from '../deliveries/queue/settle.ts';
import { type HttpSender, makeHttpSender } from '../deliveries/sender/http-sender.ts';
import type { MailActivityTools } from '../mail/attempt-mail.ts';
import { makeMailSender } from '../mail/smtp.ts';
import type { Config } from '../platform/config/config.ts';
import { makeSecretBox, parseEncryptionKeys } from '../platform/crypto/secret-box.ts';
import { makeAddressGuard } from '../platform/http/outbound-url.ts';
import type { Logger } from '../platform/logger.ts';
import type { ObjectStore } from '../platform/object-store/object-store.ts';
import type { Database, DatabasePool } from '../platform/postgres/database.ts';
import { isTransientError } from '../platform/postgres/error-class.ts';

/** Of them, what one endpoint may have open. */
const RETRY_WORKFLOWS_PER_ENDPOINT = 20;

type DeliveryTools = {
  database: DatabasePool;
  objectStore: ObjectStore;
  logger: Logger;
  /** Host and process. */
  worker: string;
  /** For metrics. */
  onAttempt: AttemptObserver;
};

/** Everything that attempts deliveries in this process, and the activities that do it for workflows. */
export function openDelivery(config: Config, tools: DeliveryTools) {
  const { database, objectStore, logger, worker, onAttempt } = tools;
  const { timeoutMs, retryScheduleMs } = config.webhooks;
  const sender = openSender(config);
  const encryptionKeys = parseEncryptionKeys(config.encryptionKeys);
  const secretBox = makeSecretBox(encryptionKeys);
  const health = makeEndpointHealth();
  const { limiter, calm, retryLimits, shareWith } = openLimits(config);
  const stopping = new AbortController();
  const gate = openGate(database, logger, () => loop.wake());
  const onTrouble = logTrouble(logger, {
    transient: 'the delivery loop waits and tries again',
    defect: 'a delivery could not be attempted or recorded; its lease brings it back',
  });
  const settlement = { database, health, retryLimits, worker, onAttempt, gate, onTrouble };
  const attempt = { ...settlement, sender, limiter, secretBox, defaults: { timeoutMs, retryScheduleMs } };
  const workflows = new DeliveryWorkflows({
    mode: config.delivery.workflows,
    calm,
    onHeadStart: (started) => void recordWorkflow(database, [started]).catch(onTrouble),
    onTrouble: (error) => logger.warn({ err: error }, 'workflows of deliveries cannot be started at present'),
  });
  const loop = new DeliveryLoop({ ...attempt, workflows });
  const leaseMs = leaseMsFor(timeoutMs);
  const join = (deliveryId: string) => loop.join(deliveryId);
  const onSettled = () => loop.wake();
  return {
    ...{ worker, secretBox, health, limiter, loop, workflows, leaseMs, shareWith },
    activities: {
      deliver: makeDeliverEventActivities({ ...attempt, join, onSettled }),
      session: makeDeliverSessionActivities({ loop, stopping: stopping.signal }),
      operations: openOperationsActivities({
        ...{ database, objectStore, sender, secretBox, encryptionKeys, timeoutMs, logger },
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

/** What bounds attempts and starts of workflows; `shareWith` tells how many processes share it, and the rank of this one. */
function openLimits(config: Config) {
  const limiter = new EndpointLimiter();
  const cores = availableParallelism();
  const calm = makeCalmWatch(cores);
  const retryAllowance = makeRetryAllowance(cores);
  const retryLimits = {
    perEndpoint: RETRY_WORKFLOWS_PER_ENDPOINT,
    overall: config.delivery.retryWorkflowsMax,
    takeStart: () => retryAllowance.take(),
  };
  const shareWith = ({ count, rank }: { count: number; rank: number }) => {
    limiter.shareWith(count, rank);
    for (const shared of [calm, retryAllowance]) shared.shareWith(count);
  };
  return { limiter, calm, retryLimits, shareWith };
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

function openSender(config: Config): HttpSender {
  const { allowCidrs, allowHttp, connectTimeoutMs, timeoutMs } = config.webhooks;
  const guard = makeAddressGuard({ allowCidrs });
  return makeHttpSender({ guard, allowHttp, connectTimeoutMs, totalTimeoutMs: timeoutMs });
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
