import {
  allHandlersFinished,
  CancellationScope,
  condition,
  defineQuery,
  defineSignal,
  isCancellation,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type {
  ReplayActivities,
  ReplayDeliveriesInput,
  ReplayProgress,
} from '../activities/replay-deliveries.ts';
import { activitiesOn } from './kit.ts';

const pause = defineSignal('pause');
const resume = defineSignal('resume');
const progressQuery = defineQuery<ReplayProgress | null>('progress');

const activities = () =>
  activitiesOn<ReplayActivities>('operations', {
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
  });

/**
 * Puts the deliveries of one selection into the queue again, beside the live ones and behind their first attempts.
 *
 *   queueReplay: pages, as fast as the endpoints take them; returns now and then, so that progress shows
 *        │ paused ─▶ wait for the signal `resume`, or for an operator's command ─▶ queueReplay
 *        │ done or cancelled ─▶ end
 *
 * The row in the database decides; the signals `pause` and `resume` and a cancellation only change it. Terminate
 * loses nothing: the task in the database starts this workflow again.
 */
export async function replayDeliveries(input: ReplayDeliveriesInput): Promise<string> {
  const { switchReplayState, endCancelledReplay } = activities();
  let progress: ReplayProgress | null = null;
  let resumes = 0;
  const switchTo = (state: 'paused' | 'running') =>
    CancellationScope.nonCancellable(() => switchReplayState({ ...input, state }));
  setHandler(progressQuery, () => progress);
  setHandler(pause, async () => {
    await switchTo('paused');
  });
  setHandler(resume, async () => {
    await switchTo('running');
    resumes += 1;
  });
  const show = (next: ReplayProgress) => {
    progress = next;
    setCurrentDetails(detailsOf(input, next));
  };
  try {
    const last = await queueAll(input, show, () => resumes);
    if (last.state === 'cancelled') show(await endCancelledReplay(input));
  } catch (error) {
    if (!isCancellation(error)) throw error;
    show(await CancellationScope.nonCancellable(() => endCancelledReplay(input)));
  }
  await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
  return progress === null ? 'Nothing was done.' : summaryOf(progress);
}

async function queueAll(
  input: ReplayDeliveriesInput,
  show: (progress: ReplayProgress) => void,
  countResumes: () => number,
): Promise<ReplayProgress> {
  for (let reported = 0; ; ) {
    const progress = await activities().queueReplay({ ...input, reported });
    show(progress);
    reported = progress.queued;
    if (progress.state === 'paused') await untilResumed(input, countResumes);
    else if (progress.state !== 'running') return progress;
  }
}

/** A command changes the row without a signal, so an activity looks at it while this waits for the signal. */
async function untilResumed(input: ReplayDeliveriesInput, countResumes: () => number): Promise<void> {
  const before = countResumes();
  await CancellationScope.cancellable(async () => {
    await Promise.race([activities().awaitReplayResume(input), condition(() => countResumes() > before)]);
    CancellationScope.current().cancel();
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
