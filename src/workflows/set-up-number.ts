import {
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { SetUpActivities, SetUpNumberInput } from '../activities/set-up-number.ts';
import { activitiesOn, resultOf } from './kit.ts';

/** The link was changed: by its customer, or from outside. */
const changed = defineSignal('changed');

const activities = () =>
  activitiesOn<SetUpActivities>('orders', {
    startToCloseTimeout: '2 minutes',
    heartbeatTimeout: '10 seconds',
  });

/** The cancellation comes at once, unless Temporal goes away in between. */
const CANCELLED_WITHIN = '30 seconds';

/**
 * Connects the number of one set-up link, after upstream has authorized it. Each step asks upstream first whether it is done.
 *
 *   authorized ── WABA, subscribe ─▶ subscribed ── register, or sync the app ─▶ registered ── self-check ─▶ done: completed
 *        │ no answer, or busy: again after 1 s to 1 h, or when signalled
 *        │ a choice for the customer: completed · refused: failed · revoked or expired: cancelled
 *
 * What the customer does later starts a new run. Terminate loses nothing: the task in the database starts this workflow
 * again. Cancel revokes the link.
 */
export async function setUpNumber(input: SetUpNumberInput): Promise<string> {
  const link = { isStale: false };
  setHandler(changed, () => {
    link.isStale = true;
  });
  try {
    return await stepByStep(input, link);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(async () => {
      show(input, await activities().endCancelledSetUp(input));
    });
    throw error;
  }
}

async function stepByStep(input: SetUpNumberInput, link: { isStale: boolean }): Promise<string> {
  for (;;) {
    link.isStale = false;
    const { summary, waitMs, end } = await activities().setUpNumberStep(input);
    show(input, summary);
    if (end === 'over') await condition(() => link.isStale, CANCELLED_WITHIN);
    else if (end !== null && !link.isStale)
      return resultOf({ failed: end === 'failed', summary }, 'SetUpFailed');
    else if (workflowInfo().continueAsNewSuggested && !link.isStale)
      return await continueAsNew<typeof setUpNumber>(input);
    else if (waitMs > 0) await condition(() => link.isStale, waitMs);
  }
}

function show({ setupLinkId }: SetUpNumberInput, summary: string): void {
  setCurrentDetails(`**Set-up link sl_${setupLinkId}.** ${summary}`);
}
