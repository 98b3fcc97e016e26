import { makeDeliverEventActivities } from '../activities/deliver-event/activities.ts';
import { makeDeliverSessionActivities } from '../activities/deliver-session/activities.ts';
import type { Config } from '../config/config.ts';
import type { DatabasePool } from '../database/database.ts';
import { isTransientError } from '../database/error-class.ts';
import { leaseMsFor } from '../deliveries/attempt/attempt-delivery.ts';
import { makeRecordGate } from '../deliveries/attempt/record-gate.ts';
import type { AttemptObserver } from '../deliveries/attempt/settle-attempts.ts';
import { makeEndpointHealth } from '../deliveries/breaker.ts';
import { DeliverySession } from '../deliveries/loop/delivery-loop.ts';
import { makeEndpointLimiter } from '../deliveries/loop/endpoint-limiter.ts';
import { makeAddressGuard } from '../deliveries/sender/address-guard.ts';
import { type HttpSender, makeHttpSender } from '../deliveries/sender/http-sender.ts';
import { makeSecretBox, parseEncryptionKeys } from '../domain/secret-box.ts';
import type { Logger } from './logger.ts';
import { openOperationsActivities } from './operations-activities.ts';

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
    /** A workflow settled a delivery: the next of its lane may be claimable. */
    onSettled: () => void;
    /** The session left deliveries to workflows. */
    onRetries: () => void;
  },
) {
  const { database, logger, worker, onAttempt } = tools;
  const { timeoutMs, retryScheduleMs } = config.webhooks;
  const sender = openSender(config);
  const secretBox = makeSecretBox(parseEncryptionKeys(config.encryptionKeys));
  const health = makeEndpointHealth();
  const limiter = makeEndpointLimiter();
  const retryLimits = {
    perEndpoint: RETRY_WORKFLOWS_PER_ENDPOINT,
    overall: config.delivery.retryWorkflowsMax,
  };
  const defaults = { timeoutMs, retryScheduleMs };
  let stopping = false;
  const onTrouble = (error: unknown) => {
    if (isTransientError(error)) logger.warn({ err: error }, 'the session waits and tries again');
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
      session.wake();
    },
  });
  const settlement = { database, health, retryLimits, worker, onAttempt, gate, onTrouble };
  const attempt = { ...settlement, sender, limiter, secretBox, defaults };
  const session = new DeliverySession({ ...attempt, onRetries: tools.onRetries });
  const leaseMs = leaseMsFor(timeoutMs);
  return {
    ...{ worker, secretBox, health, limiter, retryLimits, session, leaseMs },
    activities: {
      deliver: makeDeliverEventActivities({ ...attempt, onSettled: tools.onSettled }),
      session: makeDeliverSessionActivities({ session, isStopping: () => stopping }),
      operations: openOperationsActivities({ database, sender, secretBox, timeoutMs, logger }),
    },
    /** The session claims nothing more; what it has under way goes on. */
    stopClaiming: () => {
      stopping = true;
      session.wake();
    },
    /** Waits for attempts under way. */
    close: async () => {
      await session.drained();
      await sender.close();
    },
  };
}

function openSender(config: Config): HttpSender {
  const { allowCidrs, allowHttp, connectTimeoutMs, timeoutMs } = config.webhooks;
  const guard = makeAddressGuard({ allowCidrs });
  return makeHttpSender({ guard, allowHttp, connectTimeoutMs, totalTimeoutMs: timeoutMs });
}
