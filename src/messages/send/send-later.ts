import type { ApplicationFailure } from '@temporalio/common';
import { notYet } from '../../platform/temporal/activity-kit.ts';

/** Shorter waits are sat out in the activity: giving it back would cost more. */
export const SHORT_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 24 * 3_600_000;

/** The failure that makes Temporal call again, and says when. */
export function later(reason: string, waitMs: number): ApplicationFailure {
  const delayMs = Math.min(Math.max(waitMs, 1), LONGEST_WAIT_MS);
  const next = new Date(Date.now() + delayMs).toISOString();
  return notYet('NotYetSent', `${reason} Next attempt at ${next}.`, delayMs);
}
