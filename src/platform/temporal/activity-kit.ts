import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { isTransientError } from '../postgres/error-class.ts';

const HEARTBEAT_MS = 3_000;
const DATABASE_WAIT_MS = 2_000;

/** Runs with a heartbeat, without which Temporal takes the activity for lost; `details` are shown with each. */
export async function withHeartbeat<Result>(
  run: () => Promise<Result>,
  details: () => unknown = () => undefined,
): Promise<Result> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(details()), HEARTBEAT_MS);
  try {
    return await run();
  } finally {
    clearInterval(timer);
  }
}

/** The name by which Temporal shows a failure that is a wait. */
type NotYetType = 'NotYetDelivered' | 'NotYetReplayed' | 'NotYetSent' | 'NotYetStored' | 'NotYetReleased';

/** The failure that makes Temporal call again: nothing is wrong with us, so BENIGN keeps it out of error metrics and logs. */
export function notYet(type: NotYetType, message: string, delayMs: number): ApplicationFailure {
  const category = ApplicationFailureCategory.BENIGN;
  const failure = ApplicationFailure.create({ message, type, nextRetryDelay: delayMs, category });
  // Where in our code it was thrown tells an operator nothing about what is waited for.
  failure.stack = '';
  return failure;
}

/** The failure that makes Temporal call again, and somebody look at why. */
export function unexpectedFailure(message: string, delayMs: number): ApplicationFailure {
  return ApplicationFailure.create({ message, type: 'UnexpectedFailure', nextRetryDelay: delayMs });
}

/** Has Temporal call again soon when the database is away or busy. */
export async function awaitingDatabase<Result>(
  type: NotYetType,
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw isTransientError(error) ? notYet(type, 'The database is away or busy.', DATABASE_WAIT_MS) : error;
  }
}
