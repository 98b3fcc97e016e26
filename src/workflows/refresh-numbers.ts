import {
  condition,
  continueAsNew,
  defineSignal,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { NumberActivities, RefreshNumbersInput } from '../activities/refresh-numbers.ts';
import { activitiesOn } from './kit.ts';

/** Look again: the token was changed, or upstream says that something did. */
const changed = defineSignal('changed');

const activities = () =>
  activitiesOn<NumberActivities>('orders', {
    startToCloseTimeout: '6 minutes',
  });

/**
 * Makes the phone numbers of one WABA those that upstream lists, and ingests the bodies that waited for a new one.
 *
 *   lookUpNumbers ── listed ─▶ done
 *        │ no answer, or no valid token while bodies wait: again after 1 s to 1 h, or when signalled
 *        │ no valid token, and nothing waits ─▶ done; the daily turn tries again
 *
 * Cancel and terminate lose nothing: as long as something waits, the task in the database starts this workflow again.
 */
export async function refreshNumbers(input: RefreshNumbersInput): Promise<string> {
  let isStale = false;
  setHandler(changed, () => {
    isStale = true;
  });
  for (let tries = 0; ; tries += 1) {
    if (isStale) tries = 0;
    isStale = false;
    const { summary, waitMs } = await activities().lookUpNumbers({ ...input, tries });
    setCurrentDetails(`**The phone numbers of WABA ${input.wabaId}.** ${summary}`);
    if (waitMs === null && !isStale) return summary;
    if (workflowInfo().continueAsNewSuggested && !isStale) {
      return await continueAsNew<typeof refreshNumbers>(input);
    }
    await condition(() => isStale, waitMs ?? 0);
  }
}

/** The daily turn, by the schedule `phone-numbers-daily/…`: has the numbers of all WABAs looked up, each by its own workflow. */
export async function refreshAllNumbers(): Promise<string> {
  const asked = await activities().askForAllNumbers();
  return `The numbers of ${asked} WABAs are looked up within half an hour, by workflows waba-numbers/….`;
}
