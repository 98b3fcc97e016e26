import type {
  BroadcastActivities,
  BroadcastProgress,
  SendBroadcastInput,
} from '../activities/send-broadcast.ts';
import { runControlled } from './controlled.ts';
import { activitiesOn } from './kit.ts';

/** Gives the recipients of one broadcast their messages, a little ahead of the pace at which these leave; each message has its own workflow. */
export async function sendBroadcast(input: SendBroadcastInput): Promise<string> {
  const activities = activitiesOn<BroadcastActivities>('operations', {
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
  });
  return await runControlled<BroadcastProgress>({
    step: (before) =>
      activities.queueBroadcast({ ...input, reported: before === null ? 0 : queuedOf(before) }),
    awaitResume: () => activities.awaitBroadcastResume(input),
    switchTo: (state) =>
      activities.switchBroadcastState({ ...input, verb: state === 'paused' ? 'pause' : 'resume' }),
    endCancelled: () => activities.endCancelledBroadcast(input),
    details: (progress) =>
      `**Broadcast ${input.broadcastId}** of WABA ${input.wabaId}: ${summaryOf(progress)}\n\n` +
      'Each message has its own workflow from there. Signals: `pause`, `resume`. Cancel ends what has not begun to be sent.',
    summary: summaryOf,
  });
}

function queuedOf({ recipients, pending }: BroadcastProgress): number {
  return recipients - pending;
}

function summaryOf(progress: BroadcastProgress): string {
  const because = progress.pausedBecause === null ? '' : ` ${progress.pausedBecause}`;
  return `${progress.state}; ${queuedOf(progress)} of ${progress.recipients} queued.${because}`;
}
