import { setTimeout as sleep } from 'node:timers/promises';
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

type NotYetType =
  | 'NotYetDelivered'
  | 'NotYetErased'
  | 'NotYetReplayed'
  | 'NotYetSent'
  | 'NotYetSetUp'
  | 'NotYetStored'
  | 'NotYetReleased';

/** The failure that makes Temporal call again: nothing is wrong with us, so BENIGN keeps it out of error metrics and logs. */
export function notYet(type: NotYetType, message: string, delayMs: number): ApplicationFailure {
  const category = ApplicationFailureCategory.BENIGN;
  const failure = ApplicationFailure.create({ message, type, nextRetryDelay: delayMs, category });
  // Where in our code it was thrown tells an operator nothing about what is waited for.
  failure.stack = '';
  return failure;
}

/** The failure that makes Temporal call again, and that operators should look at. */
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

/** How something that is sent by one activity ended: in one line, and whether no receiver took it. */
export type SendingEnd = { failed: boolean; summary: string };

/** What came of one attempt to send something. */
export type SendingAttempt =
  | { state: 'sent' | 'failed'; summary: string }
  /** To be attempted again after `delayMs`. */
  | { state: 'waiting'; summary: string; delayMs: number };

/** Attempts once; each failure carries the wait until the next attempt. */
export async function attemptSending(attempt: () => Promise<SendingAttempt>): Promise<SendingEnd> {
  const outcome = await withHeartbeat(() => awaitingDatabase('NotYetSent', attempt));
  if (outcome.state !== 'waiting') return { failed: outcome.state === 'failed', summary: outcome.summary };
  const next = new Date(Date.now() + outcome.delayMs).toISOString();
  throw notYet('NotYetSent', `${outcome.summary} Next at ${next}.`, outcome.delayMs);
}

/** Has what was not sent given up, because its workflow was cancelled. */
export async function giveUpSending(record: (error: string) => Promise<void>): Promise<string> {
  const error = 'given up: the workflow was cancelled';
  await awaitingDatabase('NotYetSent', () => record(error));
  return error;
}

/** Repeats work after each of these waits while it fails in a way that `mayPass`: a short absence must not cost its result. */
export async function retryBriefly<Result>(
  work: () => Promise<Result>,
  delaysMs: readonly number[],
  { mayPass = () => true, signal }: { mayPass?: (error: unknown) => boolean; signal?: AbortSignal } = {},
): Promise<Result> {
  for (const delayMs of delaysMs) {
    try {
      return await work();
    } catch (error) {
      if (!mayPass(error)) throw error;
      await sleep(delayMs, undefined, { signal });
    }
  }
  return await work();
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** Waits after the first, second, … failed attempt; the last one stays. */
const DELAYS_MS = [
  SECOND_MS,
  2 * SECOND_MS,
  5 * SECOND_MS,
  15 * SECOND_MS,
  MINUTE_MS,
  5 * MINUTE_MS,
  15 * MINUTE_MS,
  30 * MINUTE_MS,
];
const LONGEST_DELAY_MS = 60 * MINUTE_MS;
const JITTER = 0.1;

/**
 * How long to wait after attempt number `attempt` (from 1) failed, in ms: the schedule ±10 %, or what upstream asked
 * for when that is longer, at most an hour. `random` is for tests.
 */
export function retryDelayMs(attempt: number, retryAfterMs: number | null, random = Math.random): number {
  const scheduledMs = DELAYS_MS[attempt - 1] ?? LONGEST_DELAY_MS;
  const variedMs = scheduledMs * (1 + JITTER * (2 * random() - 1));
  return Math.round(Math.min(Math.max(variedMs, retryAfterMs ?? 0), LONGEST_DELAY_MS));
}
