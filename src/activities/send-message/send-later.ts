import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';

/** Shorter waits are sat out in the activity: giving it back would cost more. */
export const SHORT_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 24 * 3_600_000;

/** The failure that makes Temporal call again: nothing is wrong with us, so it is BENIGN. */
export function later(reason: string, waitMs: number): ApplicationFailure {
  const delayMs = Math.min(Math.max(waitMs, 1), LONGEST_WAIT_MS);
  return ApplicationFailure.create({
    message: `${reason} Next attempt at ${new Date(Date.now() + delayMs).toISOString()}.`,
    type: 'NotYetSent',
    nextRetryDelay: delayMs,
    category: ApplicationFailureCategory.BENIGN,
  });
}
