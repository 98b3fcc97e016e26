import { randomBytes } from 'node:crypto';
import type { SecretBox } from '../../../platform/crypto/secret-box.ts';
import { GraphError, isObjectGone } from '../../../platform/graph/graph-error.ts';
import type { Logger } from '../../../platform/logger.ts';
import { tracing } from '../../../platform/metrics/metrics.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { isTransientError } from '../../../platform/postgres/error-class.ts';
import { retryBriefly } from '../../../platform/temporal/activity-kit.ts';
import { openAccessToken, tokenProblemOf, tryNoteTokenRefused } from '../../accounts/access-tokens.ts';
import { type FetchRun, type FetchTools, fetchMedia, isOtherMediaReadable } from './fetch-media.ts';
import { checkStorageQuota, takePendingMedia } from './media.ts';
import type { MediaUrls } from './media-urls.ts';
import { type FetchTally, judgeFailure, type MediaRetry } from './media-verdict.ts';
import {
  finishMediaTask,
  publishFailure,
  publishStored,
  removeUnlessStored,
  type StoreInboundMediaInput,
} from './store-media.ts';

/** How it ended. `finished`: an earlier run had ended it. */
export type MediaResult =
  | { outcome: 'stored' | 'finished'; summary: string }
  | { outcome: 'failed'; code: string; summary: string };

export type StoreTools = FetchTools & {
  database: Database;
  secretBox: SecretBox;
  mediaUrls: Pick<MediaUrls, 'linksOf'>;
  logger: Pick<Logger, 'warn'>;
};

/** One attempt, and what the attempts before it met. */
export type StoreRun = Omit<FetchRun, 'token'> & {
  tally: FetchTally;
  onGone(): void;
  /** Throws when the attempt was ended from outside, which says nothing about the media. */
  throwIfEnded(cause: unknown): void;
};

/** 192 bits: who knows the key may read the file, so it must not be guessed. */
const OBJECT_KEY_BYTES = 24;

/** A short absence of the database must not cost another download. */
const PUBLISH_RETRY_DELAYS_MS = [1_000, 2_000, 5_000, 10_000, 15_000];

const NOTHING_MET: FetchTally = { wrongDownloads: 0, goneResponses: 0 };

/** Fetches, checks, stores and publishes, or says when to try again. */
export async function fetchAndStore(
  tools: StoreTools,
  input: StoreInboundMediaInput,
  run: StoreRun,
): Promise<MediaResult | MediaRetry> {
  const { database } = tools;
  let ageMs: number | null = null;
  let token: string | null = null;
  try {
    const objectKey = randomBytes(OBJECT_KEY_BYTES).toString('base64url');
    const media = await takePendingMedia(database, { ...input, objectKey });
    if (media === null) {
      await database.transaction((trx) => finishMediaTask(trx, input));
      return { outcome: 'finished', summary: 'It was stored or had failed before.' };
    }
    ageMs = media.ageMs;
    await checkStorageQuota(database, input.wabaId, 1);
    token = await openAccessToken(tools, input.wabaId);
    const startMs = Date.now();
    const fetched = await fetchMedia(tools, media, { ...run, token });
    const { servedType, sizeBytes } = fetched;
    const attributes = { bytes: sizeBytes };
    tracing.note?.({ name: 'media download', about: [], startMs, endMs: Date.now(), attributes });
    const retries = { mayPass: isTransientError, signal: run.signal };
    await retryBriefly(() => publishStored(tools, input, media, fetched), PUBLISH_RETRY_DELAYS_MS, retries);
    await removeUnlessStored(tools, input, media.objectKey);
    return { outcome: 'stored', summary: `${sizeBytes} bytes, served as ${servedType}` };
  } catch (error) {
    run.throwIfEnded(error);
    const isGone = error instanceof GraphError && isObjectGone(error);
    if (isGone && token !== null && (await isOtherMediaReadable(tools, input, { ...run, token })))
      run.onGone();
    await tryNoteTokenRefused(tools, input, tokenProblemOf(error));
    return await settleFailure(tools, input, error, { tally: run.tally, ageMs });
  }
}

/** Ends media whose workflow was cancelled. */
export async function giveUpMedia(
  tools: StoreTools,
  input: StoreInboundMediaInput,
): Promise<MediaResult | MediaRetry> {
  try {
    await publishFailure(tools, input, 'media_cancelled');
    return { outcome: 'failed', code: 'media_cancelled', summary: 'The workflow was cancelled.' };
  } catch (error) {
    return await settleFailure(tools, input, error);
  }
}

async function settleFailure(
  tools: StoreTools,
  input: StoreInboundMediaInput,
  error: unknown,
  met: { tally: FetchTally; ageMs: number | null } = { tally: NOTHING_MET, ageMs: null },
): Promise<MediaResult | MediaRetry> {
  const verdict = judgeFailure(error, met.tally, met.ageMs);
  if (verdict.kind === 'retry') {
    if (verdict.unexpected) tools.logger.warn({ err: error, ...input }, 'inbound media: unexpected failure');
    return verdict;
  }
  try {
    await publishFailure(tools, input, verdict.code);
  } catch (publishError) {
    return await settleFailure(tools, input, publishError);
  }
  return { outcome: 'failed', code: verdict.code, summary: verdict.reason };
}
