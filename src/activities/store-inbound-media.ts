import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { openAccessToken } from '../accounts/access-token.ts';
import { type ActivityRun, retryLater, startRun, throwIfEnded } from '../messages/media/activity-run.ts';
import { type FetchedMedia, type FetchTools, fetchMedia } from '../messages/media/fetch-media.ts';
import { type FetchTally, judgeFailure } from '../messages/media/media-verdict.ts';
import {
  finishMediaTask,
  publishFailure,
  publishStored,
  type StoreInboundMediaInput,
} from '../messages/media/publish-media.ts';
import { type PendingMedia, takePendingMedia } from '../messages/media.ts';
import type { SecretBox } from '../platform/crypto/secret-box.ts';
import { GraphError, isObjectGone } from '../platform/graph/graph-error.ts';
import type { Database } from '../platform/postgres/database.ts';
import { isTransientError } from '../platform/postgres/error-class.ts';

/** How it ended. `finished`: an earlier run had ended it. */
export type MediaResult =
  | { outcome: 'stored' | 'finished'; summary: string }
  | { outcome: 'failed'; code: string; summary: string };

export type StoreInboundMediaActivities = ReturnType<typeof makeStoreInboundMediaActivities>;

export type StoreInboundMediaTools = FetchTools & {
  database: Database;
  secretBox: SecretBox;
  /** Where tenants reach the service, https. */
  publicUrl: string;
  logger: Pick<Logger, 'warn'>;
};

/** 192 bits: who knows the key may read the file, so it must not be guessed. */
const OBJECT_KEY_BYTES = 24;

/** A short absence of the database must not cost another download. */
const PUBLISH_RETRY_DELAYS_MS = [1_000, 2_000, 5_000, 10_000, 15_000];

const NOTHING_MET: FetchTally = { wrongDownloads: 0, goneAnswers: 0 };

/** The activities of `storeInboundMedia`. */
export function makeStoreInboundMediaActivities(tools: StoreInboundMediaTools) {
  return {
    /** Fetches, checks, stores and publishes; each failure that may pass carries the wait until the next attempt. */
    async fetchAndStoreMedia(input: StoreInboundMediaInput): Promise<MediaResult> {
      const run = startRun();
      try {
        return await store(tools, input, run);
      } finally {
        run.stop();
      }
    },

    /** Ends media as failed because its workflow was cancelled. */
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
  try {
    const objectKey = randomBytes(OBJECT_KEY_BYTES).toString('base64url');
    const media = await takePendingMedia(tools.database, { ...input, objectKey });
    if (media === null) return await endedBefore(tools, input);
    ageMs = media.ageMs;
    const token = await openAccessToken(tools, input.wabaId);
    const fetched = await fetchMedia(tools, media, { ...run, token });
    await publishPatiently(tools, input, media, fetched, run.signal);
    const { servedType, sizeBytes } = fetched;
    return { outcome: 'stored', summary: `${sizeBytes} bytes, served as ${servedType}` };
  } catch (error) {
    throwIfEnded(error);
    if (error instanceof GraphError && isObjectGone(error)) run.onGone();
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

async function publishPatiently(
  tools: StoreInboundMediaTools,
  input: StoreInboundMediaInput,
  media: PendingMedia,
  fetched: FetchedMedia,
  signal: AbortSignal,
): Promise<void> {
  for (const delayMs of [...PUBLISH_RETRY_DELAYS_MS, null]) {
    try {
      await publishStored(tools, input, media, fetched);
      return;
    } catch (error) {
      if (delayMs === null || !isTransientError(error)) throw error;
      await sleep(delayMs, undefined, { signal });
    }
  }
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
