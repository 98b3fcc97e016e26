import { mediaReadyData, mediaReadyEventId } from '../../../engine/deliveries/envelope.ts';
import { publishEvents } from '../../../engine/deliveries/publish.ts';
import type { ObjectStore } from '../../../platform/object-store/object-store.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { finishTask } from '../../../platform/temporal/workflow-tasks.ts';
import type { FetchedMedia } from './fetch-media.ts';
import {
  checkStorageQuota,
  hasMedia,
  isMediaStored,
  markMediaFailed,
  markMediaStored,
  mediaWorkflowId,
  type PendingMedia,
} from './media.ts';
import type { MediaUrls } from './media-urls.ts';
import { MEDIA_ERROR_MESSAGES, type MediaErrorCode } from './media-verdict.ts';

export type StoreInboundMediaInput = { wabaId: string; messageId: string };

/** Only its own WABA can end it. */
export async function finishMediaTask(
  trx: Transaction,
  { wabaId, messageId }: StoreInboundMediaInput,
): Promise<void> {
  if (await hasMedia(trx, wabaId, messageId)) await finishTask(trx, mediaWorkflowId(messageId));
}

/**
 * One transaction: the row, the `media.ready` event in the lane of its message (of one of the WhatsApp Business app there was no `message`,
 * so there is none), the end of the task. False: an earlier run had done it, and nothing changed.
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

/** The media may have been erased, or have failed, while it was fetched. */
export async function removeUnlessStored(
  { database, objectStore }: { database: Database; objectStore: ObjectStore },
  { messageId }: StoreInboundMediaInput,
  objectKey: string,
): Promise<void> {
  if (!(await isMediaStored(database, messageId))) await objectStore.remove(objectKey);
}

/** Ends the task too, and removes what an attempt may have left in the store. */
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
