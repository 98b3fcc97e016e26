import {
  ActivityCancellationType,
  CancellationScope,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow';
import type { MediaResult, StoreInboundMediaActivities } from '../activities/store-inbound-media.ts';
import type { StoreInboundMediaInput } from '../messages/media/store-media.ts';
import { LOST_WORKER_RETRY, queuesBeside } from '../platform/temporal/workflow-options.ts';

function fetching(): StoreInboundMediaActivities {
  return proxyActivities<StoreInboundMediaActivities>({
    taskQueue: queuesBeside(workflowInfo().taskQueue).media,
    startToCloseTimeout: '15 minutes',
    heartbeatTimeout: '30 seconds',
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    // The failures bring their own waits; these are for a worker that died.
    retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '5 minutes' },
    summary: 'fetch from upstream, check, store, announce',
  });
}

function givingUp(): StoreInboundMediaActivities {
  return proxyActivities<StoreInboundMediaActivities>({
    taskQueue: queuesBeside(workflowInfo().taskQueue).media,
    startToCloseTimeout: '1 minute',
    retry: LOST_WORKER_RETRY,
    summary: 'mark as failed',
  });
}

/**
 * Owns one inbound media file until it is stored and announced, or has failed for good.
 *
 *   fetchAndStoreMedia: one activity, retried for 7 days; its last failure says why and when next
 *        │ stored ─▶ `media.ready` follows its `message`
 *        │ final answer ─▶ the message says why there is no media
 *
 * Cancel means give up. Terminate loses nothing: the task in the database starts this workflow again.
 */
export async function storeInboundMedia(input: StoreInboundMediaInput): Promise<MediaResult> {
  setCurrentDetails(
    `**Fetching the media of message ${input.messageId}** of WABA ${input.wabaId}.\n\n` +
      'While it waits, the pending activity shows the last failure and the time of the next attempt.',
  );
  const result = await fetchOrGiveUp(input);
  setCurrentDetails(detailsOf(input, result));
  return result;
}

async function fetchOrGiveUp(input: StoreInboundMediaInput): Promise<MediaResult> {
  try {
    return await fetching().fetchAndStoreMedia(input);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return await CancellationScope.nonCancellable(() => givingUp().giveUpMedia(input));
  }
}

function detailsOf({ messageId }: StoreInboundMediaInput, result: MediaResult): string {
  switch (result.outcome) {
    case 'stored':
      return `**Stored** the media of message ${messageId}: ${result.summary}. \`media.ready\` was published.`;
    case 'finished':
      return `**Nothing to do** for message ${messageId}. ${result.summary}`;
    case 'failed':
      return `**Failed permanently** (\`${result.code}\`), message ${messageId}. ${result.summary}`;
  }
}
