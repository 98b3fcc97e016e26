import type {
  ReplayActivities,
  ReplayDeliveriesInput,
  ReplayProgress,
} from '../activities/replay-deliveries.ts';
import { runControlled } from './controlled.ts';
import { activitiesOn } from './kit.ts';

/**
 * Puts the deliveries of one selection into the queue again, beside the live ones and behind their first attempts, as fast as the
 * endpoints take them.
 */
export async function replayDeliveries(input: ReplayDeliveriesInput): Promise<string> {
  const activities = activitiesOn<ReplayActivities>('operations', {
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
  });
  return await runControlled<ReplayProgress>({
    step: (before) => activities.queueReplay({ ...input, reported: before?.queued ?? 0 }),
    awaitResume: () => activities.awaitReplayResume(input),
    switchTo: (state) => activities.switchReplayState({ ...input, state }),
    endCancelled: () => activities.endCancelledReplay(input),
    details: (progress) => detailsOf(input, progress),
    summary: summaryOf,
  });
}

function detailsOf({ wabaId, replayId }: ReplayDeliveriesInput, progress: ReplayProgress): string {
  return (
    `**Replay ${replayId}** of WABA ${wabaId}: ${summaryOf(progress)}\n\n` +
    'Each delivery in the queue goes its own way from there: `admin replay show` counts what came of them. ' +
    'Signals: `pause`, `resume`. Cancel takes out of the queue what has not been attempted.'
  );
}

function summaryOf({ state, queued, skipped, total }: ReplayProgress): string {
  return `${state}; ${queued} of ${total} queued, ${skipped} skipped.`;
}
