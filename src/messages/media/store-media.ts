import { createHash } from 'node:crypto';
import { mediaReadyData, mediaReadyEventId } from '../../deliveries/envelope.ts';
import { publishEvents } from '../../deliveries/publish.ts';
import type { GraphClient } from '../../platform/graph/graph-client.ts';
import { MediaHostRefused } from '../../platform/graph/graph-connection.ts';
import { GraphError } from '../../platform/graph/graph-error.ts';
import type { ObjectStore } from '../../platform/object-store/object-store.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { finishTask } from '../../platform/temporal/workflow-tasks.ts';
import { essenceOf } from '../send/uploaded-media.ts';
import {
  checkStorageQuota,
  findReadableMedia,
  hasMedia,
  isMediaStored,
  markMediaFailed,
  markMediaStored,
  mediaWorkflowId,
  type PendingMedia,
} from './media.ts';
import { SNIFF_BYTES, servedType } from './media-type.ts';
import type { MediaUrls } from './media-urls.ts';
import { MEDIA_ERROR_MESSAGES, type MediaErrorCode, MediaTooLarge, WrongBytes } from './media-verdict.ts';

/** The address in a webhook lives for five minutes. */
const WEBHOOK_URL_LIFETIME_MS = 5 * 60 * 1_000;

const OBJECT_TYPE = 'application/octet-stream';

export type FetchTools = { graph: GraphClient; objectStore: ObjectStore; maxBytes: number };

/** One attempt to fetch. */
export type FetchRun = {
  token: string;
  signal: AbortSignal;
  isFirstAttempt: boolean;
  onBytes: (receivedBytes: number) => void;
  onWrongBytes: () => void;
};

/** Bytes that are in the object store now. */
export type FetchedMedia = { servedType: string; sizeBytes: number; sha256: string; mimeType: string };

/**
 * Fetches media into the object store: from the address in the webhook while that may still live, otherwise or when
 * that fails from a fresh one. Throws GraphError, MediaHostRefused, WrongBytes, MediaTooLarge, ObjectStoreUnavailable,
 * and the signal's reason.
 */
export async function fetchMedia(
  tools: FetchTools,
  media: PendingMedia,
  run: FetchRun,
): Promise<FetchedMedia> {
  return (await fromWebhookUrl(tools, media, run)) ?? (await fromLookup(tools, media, run));
}

async function fromWebhookUrl(
  tools: FetchTools,
  media: PendingMedia,
  run: FetchRun,
): Promise<FetchedMedia | null> {
  if (media.upstreamUrl === null || !run.isFirstAttempt || media.ageMs > WEBHOOK_URL_LIFETIME_MS) return null;
  const expected = { expectedBytes: null, expectedSha256: decodeSha256(media.expectedSha256) };
  try {
    return await transfer(tools, media, run, { address: media.upstreamUrl, mimeType: null, ...expected });
  } catch (error) {
    // Also when it seems too large: only the lookup's size tells that from an address that sends rubbish.
    if (isFaultOfSource(error)) return null;
    throw error;
  }
}

async function fromLookup(tools: FetchTools, media: PendingMedia, run: FetchRun): Promise<FetchedMedia> {
  const metadata = await tools.graph.lookUpMedia(media.upstreamMediaId, run.token, run.signal);
  if (metadata.sizeBytes !== null && metadata.sizeBytes > tools.maxBytes) {
    throw new MediaTooLarge(metadata.sizeBytes, tools.maxBytes);
  }
  return await transfer(tools, media, run, {
    address: metadata.url,
    mimeType: metadata.mimeType,
    expectedBytes: metadata.sizeBytes,
    // The webhook is signed, so its digest goes before the lookup's.
    expectedSha256: decodeSha256(media.expectedSha256) ?? decodeSha256(metadata.sha256),
  });
}

/** Whether this token opens other media of the WABA: then it is not for want of a permission that media is missing. */
export async function isOtherMediaReadable(
  { database, graph }: Pick<FetchTools, 'graph'> & { database: Database },
  { wabaId, messageId }: StoreInboundMediaInput,
  { token, signal }: Pick<FetchRun, 'token' | 'signal'>,
): Promise<boolean> {
  try {
    const other = await findReadableMedia(database, wabaId, messageId);
    if (other === null) return false;
    await graph.lookUpMedia(other, token, signal);
    return true;
  } catch {
    return false;
  }
}

type Source = Omit<BodyRules, 'maxBytes'> & { address: string; mimeType: string | null };

async function transfer(
  { graph, objectStore, maxBytes }: FetchTools,
  media: PendingMedia,
  run: FetchRun,
  source: Source,
): Promise<FetchedMedia> {
  const download = await graph.download(source.address, run.token, run.signal);
  const declared = media.mimeType ?? source.mimeType ?? download.contentType;
  if (isText(download.contentType) && !isText(media.mimeType ?? source.mimeType)) {
    download.discard();
    run.onWrongBytes();
    throw new WrongBytes(`they are ${essenceOf(download.contentType ?? '')}, which was not declared`);
  }
  const checked = checkBody(download.body, { maxBytes, ...source }, run.onBytes);
  try {
    await objectStore.put(media.objectKey, checked.source, { contentType: OBJECT_TYPE });
  } catch (error) {
    // The store may have failed before it read anything.
    download.discard();
    if (error instanceof WrongBytes) run.onWrongBytes();
    throw error;
  }
  return { ...describe(checked.result(), declared), mimeType: declared ?? OBJECT_TYPE };
}

const TEXT = /^(?:text\/|application\/(?:[a-z.-]+\+)?(?:json|xml|javascript|rtf)$)/;

/** An answer of upstream's API is text; photos, sounds and most documents are not. */
function isText(mimeType: string | null): boolean {
  return mimeType !== null && TEXT.test(essenceOf(mimeType));
}

function describe({ sizeBytes, sha256, head }: CheckedBytes, declared: string | null) {
  return { sizeBytes, sha256, servedType: servedType(declared, head) };
}

function isFaultOfSource(error: unknown): boolean {
  return (
    error instanceof GraphError ||
    error instanceof MediaHostRefused ||
    error instanceof WrongBytes ||
    error instanceof MediaTooLarge
  );
}

const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/**
 * The digest that upstream announced, 32 bytes: webhooks give base64 (44 characters), lookups give hexadecimal (64).
 * Null for anything else, which then cannot be checked.
 */
export function decodeSha256(text: string | null): Buffer | null {
  const trimmed = text?.trim() ?? '';
  if (HEX.test(trimmed)) return Buffer.from(trimmed, 'hex');
  return BASE64.test(trimmed) ? Buffer.from(trimmed, 'base64') : null;
}

/** What a download must be; null: not known. */
export type BodyRules = { maxBytes: number; expectedBytes: number | null; expectedSha256: Buffer | null };

/** What a checked download was. `head` are its first bytes. */
type CheckedBytes = { sizeBytes: number; sha256: string; head: Buffer };

/**
 * Passes the bytes of a download through and counts, hashes and bounds them on the way. `source` throws WrongBytes at
 * its end, before a store can make the object visible, or MediaTooLarge as soon as it is; `result` is for after it.
 */
export function checkBody(
  body: AsyncIterable<Uint8Array>,
  rules: BodyRules,
  onBytes: (receivedBytes: number) => void,
): { source: AsyncGenerator<Uint8Array>; result: () => CheckedBytes } {
  const hash = createHash('sha256');
  let head = Buffer.alloc(0);
  let sizeBytes = 0;
  let digest: Buffer | null = null;

  async function* source(): AsyncGenerator<Uint8Array> {
    for await (const chunk of body) {
      sizeBytes += chunk.length;
      checkProgress(sizeBytes, rules);
      if (head.length < SNIFF_BYTES) head = Buffer.concat([head, chunk]).subarray(0, SNIFF_BYTES);
      hash.update(chunk);
      onBytes(sizeBytes);
      yield chunk;
    }
    digest = hash.digest();
    checkEnd(sizeBytes, digest, rules);
  }
  return {
    source: source(),
    result: () => {
      if (digest === null) throw new Error('the download has not ended');
      return { sizeBytes, sha256: digest.toString('hex'), head };
    },
  };
}

function checkProgress(sizeBytes: number, { maxBytes, expectedBytes }: BodyRules): void {
  if (expectedBytes !== null && sizeBytes > expectedBytes) {
    throw new WrongBytes(`more than the announced ${expectedBytes} bytes`);
  }
  if (sizeBytes > maxBytes) throw new MediaTooLarge(sizeBytes, maxBytes);
}

function checkEnd(sizeBytes: number, digest: Buffer, { expectedBytes, expectedSha256 }: BodyRules): void {
  if (expectedBytes !== null && sizeBytes < expectedBytes) {
    throw new WrongBytes(`${sizeBytes} instead of the announced ${expectedBytes} bytes`);
  }
  if (expectedSha256 !== null && !expectedSha256.equals(digest)) {
    throw new WrongBytes(
      `their SHA-256 is ${digest.toString('hex')}, announced was ${expectedSha256.toString('hex')}`,
    );
  }
  if (sizeBytes === 0 && expectedSha256 === null) throw new WrongBytes('there are none');
}

/** Ids only: what is known of the media is in the database. */
export type StoreInboundMediaInput = { wabaId: string; messageId: string };

/** Ends the task that stands in the database until the workflow is done; only its own WABA can. */
export async function finishMediaTask(
  trx: Transaction,
  { wabaId, messageId }: StoreInboundMediaInput,
): Promise<void> {
  if (await hasMedia(trx, wabaId, messageId)) await finishTask(trx, mediaWorkflowId(messageId));
}

/**
 * Makes stored media known, in one transaction: the row, the `media.ready` event in the lane of its message (of one of
 * the WhatsApp Business app there was no `message`, so there is none), the end of the task. False: an earlier run had done it, and nothing changed.
 */
export async function publishStored(
  { database, mediaUrls }: { database: Database; mediaUrls: Pick<MediaUrls, 'linksOf'> },
  input: StoreInboundMediaInput,
  media: PendingMedia,
  fetched: FetchedMedia,
): Promise<boolean> {
  const { wabaId, messageId } = input;
  const linkTo = await mediaUrls.linksOf(wabaId);
  return await database.transaction(async (trx) => {
    await finishMediaTask(trx, input);
    const stored = { ...fetched, objectKey: media.objectKey };
    const owner = await markMediaStored(trx, wabaId, messageId, stored);
    if (owner === null) return false;
    if (owner.wasStored) return true;
    await checkStorageQuota(trx, wabaId);
    if (owner.isOfApp) return true;
    const { tenantId, phoneNumberId, conversationId, upstreamId, mimeType } = owner;
    const dataJson = mediaReadyData({
      metaMessageId: upstreamId,
      serviceMessageId: messageId,
      mediaType: media.mediaType,
      mimeType,
      ...linkTo(media.objectKey),
      caption: media.caption,
    });
    const event = {
      type: 'media.ready' as const,
      eventId: mediaReadyEventId(upstreamId),
      laneKey: upstreamId,
      dataJson,
    };
    await publishEvents(
      trx,
      [{ wabaId, tenantId, phoneNumberId, conversationId, messageId, ...event }],
      new Date(),
    );
    return true;
  });
}

/** Removes the object of media that was erased, or failed, while it was fetched. */
export async function removeUnlessStored(
  { database, objectStore }: { database: Database; objectStore: ObjectStore },
  { messageId }: StoreInboundMediaInput,
  objectKey: string,
): Promise<void> {
  if (!(await isMediaStored(database, messageId))) await objectStore.remove(objectKey);
}

/** Ends media as failed for good, and its task, and removes what an attempt may have left in the store. */
export async function publishFailure(
  { database, objectStore }: { database: Database; objectStore: ObjectStore },
  input: StoreInboundMediaInput,
  code: MediaErrorCode,
): Promise<void> {
  const { wabaId, messageId } = input;
  const objectKey = await database.transaction(async (trx) => {
    await finishMediaTask(trx, input);
    return await markMediaFailed(trx, wabaId, messageId, { code, message: MEDIA_ERROR_MESSAGES[code] });
  });
  // Best effort: nothing refers to the object any more.
  if (objectKey !== null) await objectStore.remove(objectKey).catch(() => undefined);
}
