import { Context } from '@temporalio/activity';
import { type ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { notYet, retryDelayMs, unexpectedFailure } from '../../platform/temporal/activity-kit.ts';
import type { FetchTally, MediaVerdict } from './media-verdict.ts';

const HEARTBEAT_MS = 5_000;
/** Over one whole attempt; the activity's own time-out is longer. */
const ATTEMPT_DEADLINE_MS = 10 * 60 * 1_000;

/** One execution of an activity that fetches: its heartbeat, its deadline and what earlier attempts met. */
export type ActivityRun = {
  readonly isFirstAttempt: boolean;
  /** Aborts on cancellation, at shutdown and when the attempt takes too long. */
  readonly signal: AbortSignal;
  readonly tally: FetchTally;
  onBytes(receivedBytes: number): void;
  onWrongBytes(): void;
  onGone(): void;
  stop(): void;
};

/** Starts to heartbeat `{receivedBytes, wrongDownloads, goneAnswers}`; the counts go on over attempts. */
export function startRun(): ActivityRun {
  const context = Context.current();
  const { heartbeatDetails, attempt } = context.info;
  const progress = { receivedBytes: 0, ...tallyOf(heartbeatDetails) };
  const beat = () => context.heartbeat({ ...progress });
  const timer = setInterval(beat, HEARTBEAT_MS);
  beat();
  return {
    isFirstAttempt: attempt === 1,
    signal: AbortSignal.any([context.cancellationSignal, AbortSignal.timeout(ATTEMPT_DEADLINE_MS)]),
    tally: progress,
    onBytes: (receivedBytes) => {
      progress.receivedBytes = receivedBytes;
    },
    onWrongBytes: () => {
      progress.wrongDownloads += 1;
      beat();
    },
    onGone: () => {
      progress.goneAnswers += 1;
      beat();
    },
    stop: () => clearInterval(timer),
  };
}

function tallyOf(details: unknown): FetchTally {
  const { wrongDownloads, goneAnswers } = (details ?? {}) as Partial<Record<keyof FetchTally, unknown>>;
  return {
    wrongDownloads: typeof wrongDownloads === 'number' ? wrongDownloads : 0,
    goneAnswers: typeof goneAnswers === 'number' ? goneAnswers : 0,
  };
}

/**
 * Throws when the attempt was ended from outside: CancelledFailure when the workflow wants no more of it, a failure
 * that is retried when only this worker stops.
 */
export function throwIfEnded(error: unknown): void {
  const { cancellationSignal, cancellationDetails } = Context.current();
  if (!cancellationSignal.aborted) return;
  const isWanted =
    cancellationDetails?.cancelRequested || cancellationDetails?.paused || cancellationDetails?.reset;
  if (isWanted) throw new CancelledFailure('cancelled', [], error instanceof Error ? error : undefined);
  throw notYet('NotYetStored', 'The worker is shutting down; another one goes on.', 1_000);
}

/** The failure that makes Temporal retry. Trouble of others is BENIGN: no error metric, no error log. */
export function retryLater(verdict: Extract<MediaVerdict, { kind: 'retry' }>): ApplicationFailure {
  const delayMs = retryDelayMs(Context.current().info.attempt, verdict.retryAfterMs);
  const message = `${verdict.reason} Next attempt at ${new Date(Date.now() + delayMs).toISOString()}.`;
  return verdict.unexpected ? unexpectedFailure(message, delayMs) : notYet('NotYetStored', message, delayMs);
}
