import {
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow';
import type { DeliverEventActivities, DeliveryEnd, FirstAttempt } from '../activities/deliver-event.ts';
import type { DeliverEventInput } from '../deliveries/dispatch/start-workflows.ts';
import { LOST_WORKER_RETRY, queuesBeside } from '../platform/temporal/workflow-options.ts';

/** An attempt that got lost with its worker, or on the way to it, is noticed after this time. */
const HEARTBEAT_TIMEOUT = '10 seconds';

/** The activity gives up before. */
const JOIN_TIMEOUT = '5 seconds';

/** After the lease another may take over, so a worker that is silent for longer is taken for dead. */
const RECORDING_MS = 5_000;

/**
 * Owns one delivery (one event for one endpoint) until it is settled.
 *
 *   first attempt ──settled──▶ done
 *        │ failed, or cut off
 *   retryDelivery: one activity, retried by the schedule; its last failure says why and when next
 *
 * Cancel means give up: the delivery fails and the next of its lane goes out. Terminate loses nothing: the row
 * is found overdue and this workflow is started again.
 */
export async function deliverEvent(input: DeliverEventInput): Promise<string> {
  try {
    return await deliver(input);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return await CancellationScope.nonCancellable(() => lasting(input).giveUpDelivery(input));
  }
}

async function deliver(input: DeliverEventInput): Promise<string> {
  const first = await firstAttempt(input);
  if (first.settled) return resultOf(first);
  setCurrentDetails(
    `**First attempt did not succeed.** ${first.summary}\n\nThe pending activity shows the last outcome.`,
  );
  return resultOf(await lasting(input).retryDelivery(input));
}

/** A delivery that failed for good is a failed workflow, so that operators find it by its status. */
function resultOf({ failed, summary }: DeliveryEnd): string {
  if (failed)
    throw ApplicationFailure.create({ message: summary, type: 'DeliveryFailed', nonRetryable: true });
  return summary;
}

/**
 * What the process that started this workflow has under way, if that ends soon: most deliveries are one workflow task,
 * in which this runs. Without a word from it an activity looks, and is pending as long as the attempt takes.
 */
async function joinedAttempt({ deliveryId }: DeliverEventInput): Promise<FirstAttempt | null> {
  const { joinAttempt } = proxyLocalActivities<DeliverEventActivities>({
    startToCloseTimeout: JOIN_TIMEOUT,
    retry: { maximumAttempts: 1 },
    summary: 'first attempt',
  });
  try {
    return await joinAttempt(deliveryId);
  } catch (error) {
    if (isCancellation(error)) throw error;
    return null;
  }
}

/** First attempts have a queue of their own, which retries never fill. */
async function firstAttempt(input: DeliverEventInput): Promise<FirstAttempt> {
  const joined = await joinedAttempt(input);
  if (joined !== null) return joined;
  const { attemptDelivery } = proxyActivities<DeliverEventActivities>({
    startToCloseTimeout: input.leaseMs + RECORDING_MS,
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: { maximumAttempts: 1 },
    summary: 'first attempt',
  });
  try {
    return await attemptDelivery(input);
  } catch (error) {
    if (isCancellation(error)) throw error;
    return { settled: false, failed: false, summary: 'It was cut off before its outcome was recorded.' };
  }
}

/** Activities that are retried until the delivery is settled: the wait between webhooks is theirs to say. */
function lasting(input: DeliverEventInput): DeliverEventActivities {
  return proxyActivities<DeliverEventActivities>({
    taskQueue: queuesBeside(workflowInfo().taskQueue).deliveryRetries,
    startToCloseTimeout: input.leaseMs + RECORDING_MS,
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    retry: LOST_WORKER_RETRY,
    summary: 'retries',
  });
}
