import { randomBytes } from 'node:crypto';
import { Context } from '@temporalio/activity';
import { type ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { Logger } from 'pino';
import { tokenProblemOf, tryNoteTokenRefused } from '../features/accounts/access-tokens.ts';
import { openAccessToken } from '../features/accounts/accounts.ts';
import { type FetchTools, fetchMedia, isOtherMediaReadable } from '../features/messages/media/fetch-media.ts';
import { checkStorageQuota, takePendingMedia } from '../features/messages/media/media.ts';
import type { MediaUrls } from '../features/messages/media/media-urls.ts';
import {
  type FetchTally,
  judgeFailure,
  type MediaVerdict,
  waitBeforeNext,
} from '../features/messages/media/media-verdict.ts';
import {
  finishMediaTask,
  publishFailure,
  publishStored,
  removeUnlessStored,
  type StoreInboundMediaInput,
} from '../features/messages/media/store-media.ts';
import type { SecretBox } from '../platform/crypto/secret-box.ts';
import { GraphError, isObjectGone } from '../platform/graph/graph-error.ts';
import { tracing } from '../platform/metrics/metrics.ts';
import type { Database } from '../platform/postgres/database.ts';
import { isTransientError } from '../platform/postgres/error-class.ts';
import { notYet, retryBriefly, unexpectedFailure, withHeartbeat } from '../platform/temporal/activity-kit.ts';

/** How it ended. `finished`: an earlier run had ended it. */
export type MediaResult =
  | { outcome: 'stored' | 'finished'; summary: string }
  | { outcome: 'failed'; code: string; summary: string };

export type StoreInboundMediaActivities = ReturnType<typeof makeStoreInboundMediaActivities>;

export type StoreInboundMediaTools = FetchTools & {
  database: Database;
  secretBox: SecretBox;
  mediaUrls: Pick<MediaUrls, 'linksOf'>;
  logger: Pick<Logger, 'warn'>;
};

/** 192 bits: who knows the key may read the file, so it must not be guessed. */
const OBJECT_KEY_BYTES = 24;

/** A short absence of the database must not cost another download. */
const PUBLISH_RETRY_DELAYS_MS = [1_000, 2_000, 5_000, 10_000, 15_000];

const NOTHING_MET: FetchTally = { wrongDownloads: 0, goneResponses: 0 };

export function makeStoreInboundMediaActivities(tools: StoreInboundMediaTools) {
  return {
    /** Fetches, checks, stores and publishes; each failure that may pass carries the wait until the next attempt. */
    async fetchAndStoreMedia(input: StoreInboundMediaInput): Promise<MediaResult> {
      const run = startRun();
      return await withHeartbeat(() => store(tools, input, run), run.progress);
    },

    async giveUpMedia(input: StoreInboundMediaInput): Promise<MediaResult> {
      try {
        await publishFailure(tools, input, 'media_cancelled');
        return { outcome: 'failed', code: 'media_cancelled', summary: 'The workflow was cancelled.' };
      } catch (error) {
        return await settleFailure(tools, input, error, NOTHING_MET, null);
      }
    },
  };
}

async function store(
  tools: StoreInboundMediaTools,
  input: StoreInboundMediaInput,
  run: ActivityRun,
): Promise<MediaResult> {
  let ageMs: number | null = null;
  let token: string | null = null;
  try {
    const objectKey = randomBytes(OBJECT_KEY_BYTES).toString('base64url');
    const media = await takePendingMedia(tools.database, { ...input, objectKey });
    if (media === null) return await endedBefore(tools, input);
    ageMs = media.ageMs;
    await checkStorageQuota(tools.database, input.wabaId, 1);
    token = await openAccessToken(tools, input.wabaId);
    const startMs = Date.now();
    const fetched = await fetchMedia(tools, media, { ...run, token });
    const attributes = { bytes: fetched.sizeBytes };
    tracing.note?.({ name: 'media download', about: [], startMs, endMs: Date.now(), attributes });
    const retries = { mayPass: isTransientError, signal: run.signal };
    await retryBriefly(() => publishStored(tools, input, media, fetched), PUBLISH_RETRY_DELAYS_MS, retries);
    await removeUnlessStored(tools, input, media.objectKey);
    const { servedType, sizeBytes } = fetched;
    return { outcome: 'stored', summary: `${sizeBytes} bytes, served as ${servedType}` };
  } catch (error) {
    throwIfEnded(error);
    const isGone = error instanceof GraphError && isObjectGone(error);
    if (isGone && token !== null && (await isOtherMediaReadable(tools, input, { ...run, token })))
      run.onGone();
    await tryNoteTokenRefused(tools, input, tokenProblemOf(error));
    return await settleFailure(tools, input, error, run.tally, ageMs);
  }
}

async function endedBefore(
  { database }: StoreInboundMediaTools,
  input: StoreInboundMediaInput,
): Promise<MediaResult> {
  await database.transaction((trx) => finishMediaTask(trx, input));
  return { outcome: 'finished', summary: 'It was stored or had failed before.' };
}

/** Ends the media, or throws the failure after which the next attempt comes. */
async function settleFailure(
  tools: StoreInboundMediaTools,
  input: StoreInboundMediaInput,
  error: unknown,
  tally: FetchTally,
  ageMs: number | null,
): Promise<MediaResult> {
  const verdict = judgeFailure(error, tally, ageMs);
  if (verdict.kind === 'retry') {
    if (verdict.unexpected) tools.logger.warn({ err: error, ...input }, 'inbound media: unexpected failure');
    throw retryLater(verdict);
  }
  try {
    await publishFailure(tools, input, verdict.code);
  } catch (publishError) {
    return await settleFailure(tools, input, publishError, NOTHING_MET, null);
  }
  return { outcome: 'failed', code: verdict.code, summary: verdict.reason };
}

/** Over one whole attempt; the activity's own time-out is longer. */
const ATTEMPT_DEADLINE_MS = 10 * 60 * 1_000;

/** One execution of an activity that fetches: its heartbeat, its deadline and what earlier attempts met. */
type ActivityRun = {
  readonly isFirstAttempt: boolean;
  /** Aborts on cancellation, at shutdown and when the attempt takes too long. */
  readonly signal: AbortSignal;
  readonly tally: FetchTally;
  onBytes(receivedBytes: number): void;
  onWrongBytes(): void;
  onGone(): void;
  /** What a heartbeat tells, and with it the next attempt. */
  progress(): unknown;
};

/** Starts to heartbeat `{receivedBytes, wrongDownloads, goneResponses}`; the counts go on over attempts. */
function startRun(): ActivityRun {
  const context = Context.current();
  const { heartbeatDetails, attempt } = context.info;
  const progress = { receivedBytes: 0, ...tallyOf(heartbeatDetails) };
  const beat = () => context.heartbeat({ ...progress });
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
      progress.goneResponses += 1;
      beat();
    },
    progress: () => ({ ...progress }),
  };
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

/** The failure that makes Temporal retry. Trouble of others is BENIGN: no error metric, no error log. */
function retryLater(verdict: Extract<MediaVerdict, { kind: 'retry' }>): ApplicationFailure {
  const delayMs = waitBeforeNext(verdict, Context.current().info.attempt);
  const message = `${verdict.reason} Next attempt at ${new Date(Date.now() + delayMs).toISOString()}.`;
  return verdict.unexpected ? unexpectedFailure(message, delayMs) : notYet('NotYetStored', message, delayMs);
}
