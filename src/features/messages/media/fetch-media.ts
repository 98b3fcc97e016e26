import type { GraphClient } from '../../../platform/graph/graph-client.ts';
import { MediaHostRefused } from '../../../platform/graph/graph-connection.ts';
import { GraphError } from '../../../platform/graph/graph-error.ts';
import type { ObjectStore } from '../../../platform/object-store/object-store.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { essenceOf } from '../send/uploaded-media.ts';
import { findReadableMedia, type PendingMedia } from './media.ts';
import { type BodyRules, checkBody, decodeSha256 } from './media-body.ts';
import { servedType } from './media-type.ts';
import { MediaTooLarge, WrongBytes } from './media-verdict.ts';

/** The address in a webhook lives for five minutes. */
const WEBHOOK_URL_LIFETIME_MS = 5 * 60 * 1_000;

const OBJECT_TYPE = 'application/octet-stream';

export type FetchTools = { graph: GraphClient; objectStore: ObjectStore; maxBytes: number };

export type FetchRun = {
  token: string;
  signal: AbortSignal;
  isFirstAttempt: boolean;
  onBytes: (receivedBytes: number) => void;
  onWrongBytes: () => void;
};

export type FetchedMedia = { servedType: string; sizeBytes: number; sha256: string; mimeType: string };

/**
 * Takes the address in the webhook while that may still live, otherwise or when that fails a fresh one. Throws GraphError,
 * MediaHostRefused, WrongBytes, MediaTooLarge, ObjectStoreUnavailable, and the signal's reason.
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

/** If so, it is not for want of a permission that media is missing. */
export async function isOtherMediaReadable(
  { database, graph }: Pick<FetchTools, 'graph'> & { database: Database },
  { wabaId, messageId }: { wabaId: string; messageId: string },
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
  const { sizeBytes, sha256, head } = checked.result();
  return { sizeBytes, sha256, servedType: servedType(declared, head), mimeType: declared ?? OBJECT_TYPE };
}

const TEXT = /^(?:text\/|application\/(?:[a-z.-]+\+)?(?:json|xml|javascript|rtf)$)/;

/** An answer of upstream's API is text; photos, sounds and most documents are not. */
function isText(mimeType: string | null): boolean {
  return mimeType !== null && TEXT.test(essenceOf(mimeType));
}

function isFaultOfSource(error: unknown): boolean {
  return (
    error instanceof GraphError ||
    error instanceof MediaHostRefused ||
    error instanceof WrongBytes ||
    error instanceof MediaTooLarge
  );
}
