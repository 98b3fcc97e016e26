import { upsertMemo } from '@temporalio/workflow';
import type {
  BroadcastActivities,
  BroadcastProgress,
  SendBroadcastInput,
} from '../activities/send-broadcast.ts';
import { SENT_UP_TO } from '../platform/temporal/workflow-options.ts';
import { runControlled } from './controlled.ts';
import { activitiesOn } from './kit.ts';

/**
 * Sends the recipients of one broadcast their messages, part by part. The memo has the last recipient of each part before its first message
 * leaves, so that no recipient gets two when the database is restored to an earlier moment. A message that has to wait has its own workflow.
 */
export async function sendBroadcast(input: SendBroadcastInput): Promise<string> {
  const activities = activitiesOn<BroadcastActivities>('operations', {
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: '10 seconds',
  });
  return await runControlled<BroadcastProgress>({
    step: (before) => {
      const upTo = before?.nextUpTo ?? null;
      if (upTo !== null) upsertMemo({ [SENT_UP_TO]: upTo });
      return activities.queueBroadcast({ ...input, upTo });
    },
    awaitResume: () => activities.awaitBroadcastResume(input),
    switchTo: (state) =>
      activities.switchBroadcastState({ ...input, verb: state === 'paused' ? 'pause' : 'resume' }),
    endCancelled: () => activities.endCancelledBroadcast(input),
    details: (progress) =>
      `**Broadcast ${input.broadcastId}** of WABA ${input.wabaId}: ${summaryOf(progress)}\n\n` +
      'A message that has to wait has its own workflow. Signals: `pause`, `resume`. Cancel ends what has not begun to be sent.',
    summary: summaryOf,
  });
}

function summaryOf({ state, recipients, pending, pausedBecause }: BroadcastProgress): string {
  const because = pausedBecause === null ? '' : ` ${pausedBecause}`;
  return `${state}; ${recipients - pending} of ${recipients} have their message.${because}`;
}
