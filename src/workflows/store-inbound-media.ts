import { ActivityCancellationType, setCurrentDetails } from '@temporalio/workflow';
import type { StoreInboundMediaActivities } from '../activities/store-inbound-media.ts';
import type { MediaResult } from '../features/messages/media/fetch-and-store.ts';
import type { StoreInboundMediaInput } from '../features/messages/media/store-media.ts';
import { activitiesOn, orGiveUp } from './kit.ts';

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
  const fetching = activitiesOn<StoreInboundMediaActivities>('media', {
    startToCloseTimeout: '15 minutes',
    heartbeatTimeout: '30 seconds',
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '5 minutes' },
    summary: 'fetch from upstream, check, store, announce',
  });
  const givingUp = activitiesOn<StoreInboundMediaActivities>('media', {
    startToCloseTimeout: '1 minute',
    summary: 'mark as failed',
  });
  setCurrentDetails(
    `**Fetching the media of message ${input.messageId}** of WABA ${input.wabaId}.\n\n` +
      'While it waits, the pending activity shows the last failure and the time of the next attempt.',
  );
  const result = await orGiveUp(
    () => fetching.fetchAndStoreMedia(input),
    () => givingUp.giveUpMedia(input),
  );
  setCurrentDetails(detailsOf(input, result));
  return result;
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
