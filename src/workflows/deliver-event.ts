import {
  CancellationScope,
  condition,
  defineSignal,
  isCancellation,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { DeliverEventActivities } from '../activities/deliver-event.ts';
import type { DeliverEventInput } from '../engine/deliveries/dispatch/start-workflows.ts';
import type { DeliveryNews } from '../engine/deliveries/run-news.ts';
import { NEWS_SIGNAL } from '../platform/temporal/workflow-options.ts';
import { activitiesOn, resultOf } from './kit.ts';

/** An attempt that got lost with its worker, or on the way to it, is noticed after this time. */
const HEARTBEAT_TIMEOUT = '10 seconds';

/** The local activity gives up before. */
const JOIN_TIMEOUT = '5 seconds';

/** After the lease another may take over, so a worker that is silent for longer is taken for dead. */
const RECORDING_MS = 5_000;

const newsSignal = defineSignal<[DeliveryNews]>(NEWS_SIGNAL);

/**
 * Shows one delivery (one event for one endpoint) from an attempt on until it has ended, and makes its attempts when their
 * time comes.
 *
 *   it has ended already ─────────────────────────────────────────▶ done
 *   attemptDelivery: one activity, retried until the end; its last failure says why it waits and until when
 *        │ an attempt of this run, or news of one that a delivery loop made
 *        └──▶ delivered: completed · failed permanently: failed · dropped: cancelled
 *
 * PostgreSQL owns the delivery: when this run is paused, stuck or gone, a delivery loop makes the attempts. Cancel drops
 * the delivery, and the next of its lane goes out.
 */
export async function deliverEvent(input: DeliverEventInput): Promise<string> {
  let reported: DeliveryNews | null = null;
  setHandler(newsSignal, (news) => {
    if (isResult(news)) reported = news;
    else show(news);
  });
  try {
    const first = input.held ? await heldAttempt(input) : input.news;
    if (first !== null && isResult(first)) return endOf(first);
    if (first !== null) show(first);
    const attempts = lasting(input).attemptDelivery(input);
    const report = condition(() => reported !== null).then(() => reported);
    return endOf((await Promise.race([report, attempts])) ?? (await attempts));
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => lasting(input).dropDelivery(input.deliveryId));
    throw error;
  }
}

function show({ summary }: DeliveryNews): void {
  setCurrentDetails(
    `**Not delivered yet.** ${summary}\n\nThe pending activity says when the next attempt is.`,
  );
}

/** A dropped delivery has no result: its run looks again, finds that out and is cancelled. */
function isResult({ end }: DeliveryNews): boolean {
  return end === 'delivered' || end === 'failed';
}

const endOf = ({ end, summary }: DeliveryNews) =>
  resultOf({ failed: end === 'failed', summary }, 'DeliveryFailed');

/** The attempt that the process which started this run holds for it: most take one workflow task, in which this runs. */
async function heldAttempt({ deliveryId }: DeliverEventInput): Promise<DeliveryNews | null> {
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

/** Activities that are retried until the delivery has ended: the wait between webhooks is theirs to say. */
function lasting(input: DeliverEventInput): DeliverEventActivities {
  return activitiesOn<DeliverEventActivities>('deliveryRetries', {
    startToCloseTimeout: input.leaseMs + RECORDING_MS,
    heartbeatTimeout: HEARTBEAT_TIMEOUT,
    summary: 'attempts',
  });
}
