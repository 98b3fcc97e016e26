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

const pause = defineSignal('pause');
const resume = defineSignal('resume');

type Controlled<Progress> = {
  /** Goes on until there is much to show, or it does not run any more. */
  step(before: Progress | null): Promise<Progress>;
  /** Returns when what is paused goes on or was cancelled. */
  awaitResume(): Promise<unknown>;
  switchTo(state: 'paused' | 'running'): Promise<void>;
  endCancelled(): Promise<Progress>;
  details(progress: Progress): string;
  summary(progress: Progress): string;
};

/**
 * Runs long work page by page, with the signals `pause` and `resume` and the query `progress`.
 *
 *   step: pages; returns now and then, so that progress shows
 *        │ paused ─▶ wait for the signal `resume`, or for a command ─▶ step
 *        │ done or cancelled ─▶ end
 *
 * The row in the database decides; the signals and a cancellation only change it. Terminate loses nothing: the task in the database
 * starts the workflow again.
 */
export async function runControlled<Progress extends { state: string }>(
  work: Controlled<Progress>,
): Promise<string> {
  let progress: Progress | null = null;
  let resumes = 0;
  const switchTo = (state: 'paused' | 'running') =>
    CancellationScope.nonCancellable(() => work.switchTo(state));
  setHandler(defineQuery<Progress | null>('progress'), () => progress);
  setHandler(pause, async () => {
    await switchTo('paused');
  });
  setHandler(resume, async () => {
    await switchTo('running');
    resumes += 1;
  });
  const show = (next: Progress) => {
    progress = next;
    setCurrentDetails(work.details(next));
    return next;
  };
  try {
    const last = await stepAll(work, show, () => resumes);
    if (last.state === 'cancelled') show(await work.endCancelled());
  } catch (error) {
    if (!isCancellation(error)) throw error;
    show(await CancellationScope.nonCancellable(() => work.endCancelled()));
  }
  await CancellationScope.nonCancellable(() => condition(allHandlersFinished));
  return progress === null ? 'Nothing was done.' : work.summary(progress);
}

async function stepAll<Progress extends { state: string }>(
  work: Controlled<Progress>,
  show: (progress: Progress) => Progress,
  countResumes: () => number,
): Promise<Progress> {
  for (let before: Progress | null = null; ; ) {
    const progress: Progress = show(await work.step(before));
    before = progress;
    if (progress.state === 'paused') await untilResumed(work, countResumes);
    else if (progress.state !== 'running') return progress;
  }
}

/** A command changes the row without a signal, so an activity looks at it while this waits for the signal. */
async function untilResumed<Progress>(
  work: Pick<Controlled<Progress>, 'awaitResume'>,
  countResumes: () => number,
): Promise<void> {
  const before = countResumes();
  await CancellationScope.cancellable(async () => {
    await Promise.race([work.awaitResume(), condition(() => countResumes() > before)]);
    CancellationScope.current().cancel();
  });
}
