import { Context } from '@temporalio/activity';
import { CancelledFailure } from '@temporalio/common';
import {
  fetchAndStore,
  giveUpMedia,
  type MediaResult,
  type StoreRun,
  type StoreTools,
} from '../features/messages/media/fetch-and-store.ts';
import {
  type FetchTally,
  type MediaRetry,
  waitBeforeNext,
} from '../features/messages/media/media-verdict.ts';
import type { StoreInboundMediaInput } from '../features/messages/media/store-media.ts';
import { notYet, unexpectedFailure, withHeartbeat } from '../platform/temporal/activity-kit.ts';

export type StoreInboundMediaActivities = ReturnType<typeof makeStoreInboundMediaActivities>;

export function makeStoreInboundMediaActivities(tools: StoreTools) {
  return {
    /** Each failure that may pass carries the wait until the next attempt. */
    async fetchAndStoreMedia(input: StoreInboundMediaInput): Promise<MediaResult> {
      const { run, progress } = startRun();
      return await withHeartbeat(async () => ended(await fetchAndStore(tools, input, run)), progress);
    },

    giveUpMedia: async (input: StoreInboundMediaInput): Promise<MediaResult> =>
      ended(await giveUpMedia(tools, input)),
  };
}

/** Throws the failure that makes Temporal retry. Trouble of others is BENIGN: no error metric, no error log. */
function ended(end: MediaResult | MediaRetry): MediaResult {
  if ('outcome' in end) return end;
  const delayMs = waitBeforeNext(end, Context.current().info.attempt);
  const message = `${end.reason} Next attempt at ${new Date(Date.now() + delayMs).toISOString()}.`;
  throw end.unexpected ? unexpectedFailure(message, delayMs) : notYet('NotYetStored', message, delayMs);
}

/** Over one whole attempt; the activity's own time-out is longer. */
const ATTEMPT_DEADLINE_MS = 10 * 60 * 1_000;

/** Starts to heartbeat `{receivedBytes, wrongDownloads, goneResponses}`; the counts go on over attempts. */
function startRun(): { run: StoreRun; progress: () => unknown } {
  const context = Context.current();
  const { heartbeatDetails, attempt } = context.info;
  const tally = { receivedBytes: 0, ...tallyOf(heartbeatDetails) };
  const progress = () => ({ ...tally });
  const met = (what: keyof FetchTally) => () => {
    tally[what] += 1;
    context.heartbeat(progress());
  };
  context.heartbeat(progress());
  const run = {
    isFirstAttempt: attempt === 1,
    signal: AbortSignal.any([context.cancellationSignal, AbortSignal.timeout(ATTEMPT_DEADLINE_MS)]),
    tally,
    onBytes: (receivedBytes: number) => {
      tally.receivedBytes = receivedBytes;
    },
    onWrongBytes: met('wrongDownloads'),
    onGone: met('goneResponses'),
    throwIfEnded,
  };
  return { run, progress };
}

function tallyOf(details: unknown): FetchTally {
  const { wrongDownloads, goneResponses } = (details ?? {}) as Partial<Record<keyof FetchTally, unknown>>;
  return {
    wrongDownloads: typeof wrongDownloads === 'number' ? wrongDownloads : 0,
    goneResponses: typeof goneResponses === 'number' ? goneResponses : 0,
  };
}

/**
 * Throws when the attempt was ended from outside: CancelledFailure when the workflow wants no more of it, a failure
 * that is retried when only this worker stops.
 */
function throwIfEnded(error: unknown): void {
  const { cancellationSignal, cancellationDetails } = Context.current();
  if (!cancellationSignal.aborted) return;
  const isWanted =
    cancellationDetails?.cancelRequested || cancellationDetails?.paused || cancellationDetails?.reset;
  if (isWanted) throw new CancelledFailure('cancelled', [], error instanceof Error ? error : undefined);
  throw notYet('NotYetStored', 'The worker is shutting down; another one goes on.', 1_000);
}
