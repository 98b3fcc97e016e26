import { ApplicationFailure } from '@temporalio/common';
import type { Logger } from 'pino';
import type { SecretBox } from '../../../platform/crypto/secret-box.ts';
import type { SendClient } from '../../../platform/graph/graph-client.ts';
import { GraphError } from '../../../platform/graph/graph-error.ts';
import type { SendOutcome } from '../../../platform/graph/graph-send.ts';
import type { ObjectStore } from '../../../platform/object-store/object-store.ts';
import {
  ObjectMissing,
  ObjectStoreUnavailable,
  objectStoreError,
} from '../../../platform/object-store/store-errors.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { publicMediaId } from '../../../platform/public-ids.ts';
import { notYet } from '../../../platform/temporal/activity-kit.ts';
import {
  claimUpstreamMedia,
  findMediaUploads,
  forgetUpstreamMedia,
  knownUpstreamMedia,
  type MediaUpload,
  saveUpstreamMedia,
} from './media-uploads.ts';
import type { SendTurn } from './outbound-messages.ts';
import { type SendMessageInput, untilRecorded } from './record-send.ts';
import type { SendError } from './send-error.ts';
import { sendRetryDelayMs } from './send-pacing.ts';
import { judgeSend } from './send-verdict.ts';

export type SendMessageTools = {
  database: Database;
  secretBox: SecretBox;
  sender: Pick<SendClient, 'sendMessage' | 'uploadMedia' | 'listMessageTemplates'>;
  objectStore: Pick<ObjectStore, 'getRange'>;
  sending: { messagesPerSecond: number | null; timeoutMs: number; retryHours: number };
  logger: Pick<Logger, 'warn'>;
};

/** Uploads that a process makes at a time: long ones must not take all slots for sends. */
const UPLOADS_AT_A_TIME = 16;

/** A little more than an upload may take. */
const LEASE_MS = 100_000;
const HOUR_MS = 3_600_000;

/** After an upload that took longer than this the rest is for another execution, which has all its time for it. */
const LONG_MS = 15_000;
const BUSY_WAIT_MS = 1_000;

type MediaSlots = { free: number };

export function makeMediaSlots(): MediaSlots {
  return { free: UPLOADS_AT_A_TIME };
}

type MediaTurn = Extract<SendTurn, { kind: 'media' }>;

export type UploadRun = { token: string; slots: MediaSlots; attempt: number; signal: AbortSignal };

/**
 * Each file is given once for all messages of the number. Null: upstream has them now. Otherwise why the message cannot be sent. Throws the
 * failure after which to try again.
 */
export async function giveMedia(
  tools: SendMessageTools,
  { wabaId }: SendMessageInput,
  turn: MediaTurn,
  run: UploadRun,
): Promise<SendError | null> {
  const startedAt = performance.now();
  const files = await findMediaUploads(tools.database, wabaId, turn.missing);
  for (const uuid of turn.missing) {
    const file = files.find((one) => one.uuid === uuid);
    const error = file === undefined ? mediaMissing(uuid) : await giveFile(tools, file, turn, run);
    if (error !== null) return error;
    if (performance.now() - startedAt > LONG_MS) throw later('The upstream platform has its file now.', 1);
  }
  return null;
}

async function giveFile(
  tools: SendMessageTools,
  file: MediaUpload,
  turn: MediaTurn,
  run: UploadRun,
): Promise<SendError | null> {
  const { database } = tools;
  const { phoneNumberId } = turn;
  const { slots } = run;
  if (slots.free === 0) throw laterWhenFree('Many files are being given to the upstream platform.');
  slots.free -= 1;
  try {
    const claimed = await claimUpstreamMedia(database, { ...file, phoneNumberId }, LEASE_MS);
    if (!claimed) {
      if ((await knownUpstreamMedia(database, phoneNumberId, [file.uuid])).size > 0) return null;
      throw laterWhenFree('Its file is being given to the upstream platform by another message.');
    }
    const upstreamMediaId = await upload(tools, file, phoneNumberId, run);
    await untilRecorded(() => saveUpstreamMedia(database, { ...file, phoneNumberId }, upstreamMediaId));
    return null;
  } catch (error) {
    return await judgeUpload(tools, file, { ...turn, ...run }, error);
  } finally {
    slots.free += 1;
  }
}

async function upload(
  { sender, objectStore }: SendMessageTools,
  { objectKey, mimeType, fileName, sizeBytes }: MediaUpload,
  phoneNumberId: string,
  { token, signal }: UploadRun,
): Promise<string> {
  const body = await objectStore.getRange(objectKey);
  try {
    const file = { mimeType, fileName: fileName ?? 'file', sizeBytes, body: storedBytes(body, objectKey) };
    return await sender.uploadMedia({ phoneNumberId, token, file, signal });
  } finally {
    body.destroy();
  }
}

/** The store can also fail after it has begun to answer: throws as `getRange` does. */
async function* storedBytes(body: AsyncIterable<Uint8Array>, objectKey: string): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw objectStoreError(error, objectKey);
  }
}

async function judgeUpload(
  { database, sending, logger }: SendMessageTools,
  { uuid }: MediaUpload,
  { phoneNumberId, ageMs, attempt }: MediaTurn & UploadRun,
  error: unknown,
): Promise<SendError | null> {
  if (error instanceof ApplicationFailure) throw error;
  await forgetUpstreamMedia(database, phoneNumberId, [uuid]);
  if (error instanceof ObjectMissing) {
    logger.warn(
      { err: error, mediaId: publicMediaId(uuid) },
      'a file to send is missing in the object store',
    );
    return mediaMissing(uuid);
  }
  const retryMs = sending.retryHours * HOUR_MS;
  if (error instanceof ObjectStoreUnavailable) {
    if (ageMs > retryMs) return mediaMissing(uuid, 'cannot be read');
    throw later(error.message, SHORT_WAIT_MS);
  }
  if (!(error instanceof GraphError)) throw error;
  const verdict = judgeSend(outcomeOf(error), { attempt, ageMs, retryMs });
  if (verdict.kind === 'again') {
    throw later(`The file: ${verdict.error.message}`, sendRetryDelayMs(attempt, verdict.retryAfterMs));
  }
  return verdict.kind === 'failed' ? verdict.error : mediaMissing(uuid);
}

/** A file may be given twice without harm, so a missing answer is as good as none. */
function outcomeOf(failure: GraphError): SendOutcome {
  const { httpStatus, code, upstream, transient, retryAfterMs, message } = failure;
  if (httpStatus === null) return { kind: 'not_sent', reason: message };
  const error = upstream === null ? null : { ...upstream };
  return { kind: 'refused', httpStatus, code, error, transient, retryAfterMs };
}

function mediaMissing(uuid: string, why = 'was deleted or has expired'): SendError {
  const message = `The file ${publicMediaId(uuid)} ${why}.`;
  return { code: 'media_missing', message, upstream: null };
}

/** Answers that may mean that upstream has lost a file: it is given again with the next attempt. */
const MEDIA_CODES = new Set([100, 131008, 131009, 131052, 131053]);

export async function forgetRefusedMedia(
  { database }: SendMessageTools,
  { phoneNumberId, upstreamMedia }: Extract<SendTurn, { kind: 'send' }>,
  outcome: SendOutcome,
): Promise<void> {
  const isRefused = outcome.kind === 'refused' && outcome.code !== null && MEDIA_CODES.has(outcome.code);
  if (!isRefused || upstreamMedia.size === 0) return;
  await untilRecorded(() => forgetUpstreamMedia(database, phoneNumberId, [...upstreamMedia.keys()]));
}

function laterWhenFree(reason: string): ApplicationFailure {
  return later(reason, BUSY_WAIT_MS * (1 + Math.random()));
}

/** Shorter waits are sat out in the activity: a retry by Temporal would cost more. */
export const SHORT_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 24 * 3_600_000;

export function later(reason: string, waitMs: number): ApplicationFailure {
  const delayMs = Math.min(Math.max(waitMs, 1), LONGEST_WAIT_MS);
  const next = new Date(Date.now() + delayMs).toISOString();
  return notYet('NotYetSent', `${reason} Next attempt at ${next}.`, delayMs);
}
