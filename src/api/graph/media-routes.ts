import { setTimeout as sleep } from 'node:timers/promises';
import multipart from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import { findReceivedMedia, type ReceivedMedia } from '../../features/messages/media/media-by-upstream-id.ts';
import { deleteMediaUpload, findMediaUploads } from '../../features/messages/send/media-uploads.ts';
import { countedAddress } from '../../platform/http/counted-address.ts';
import { ObjectMissing } from '../../platform/object-store/store-errors.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { accountOf, SCOPES } from '../keys/api-key-auth.ts';
import { formValidator, takeUpload, UPLOAD_TIMEOUT_MS } from '../messages/uploads/take-upload.ts';
import { goneSignal } from '../shares/download-shares.ts';
import { errorParts, FacadeError, noSuchObject } from './facade-error.ts';
import { FACADE_ROOTS, facadeUrl, type ObjectRoute, requireNumber } from './facade-paths.ts';
import { facadeMediaId, uploadUuidOf } from './media-ids.ts';

/** Of received files; those of uploaded ones are looked for first. */
const UPSTREAM_MEDIA_ID = /^\d{1,64}$/;

/** POST /{phone number id}/media: the file is kept here and given to upstream with the first message that names it. */
export function facadeUploads(app: ExternalApp, context: ExternalContext): void {
  app.register(async (forms: ExternalApp) => {
    forms.removeAllContentTypeParsers();
    await forms.register(multipart, { throwFileSizeLimit: false });
    const options = {
      schema: { body: {} },
      validatorCompiler: formValidator,
      config: { ...SCOPES.graph, readsBody: true },
      handlerTimeout: UPLOAD_TIMEOUT_MS,
    };
    for (const root of FACADE_ROOTS) {
      forms.post<ObjectRoute>(`${root}/:id/media`, options, async (request) => {
        await requireNumber(context.database, accountOf(request).wabaId, request.params.id);
        return { id: facadeMediaId(await takeUpload(context, request, { furtherFields: 'ignored' })) };
      });
    }
  });
}

/** The bytes of files that were uploaded; those of received ones have their own addresses. */
export function facadeDownloads(app: ExternalApp, context: ExternalContext): void {
  const { uploadStore, exports } = context;
  const options = { config: SCOPES.graph, exposeHeadRoute: false };
  for (const root of FACADE_ROOTS) {
    app.get<ObjectRoute>(`${root}/uploaded_media/:id`, options, async (request, reply) => {
      const { wabaId, tenantId } = accountOf(request);
      const file = await findUpload(context, wabaId, request.params.id);
      if (file === null) throw noSuchObject();
      const owners = { file: file.uuid, address: countedAddress(request.ip), tenant: tenantId };
      const gone = goneSignal(reply);
      const bytes = await exports
        .open(owners, gone, () => uploadStore.getRange(file.objectKey, undefined, gone))
        .catch((error: unknown) => {
          if (!(error instanceof ObjectMissing)) throw error;
          request.log.error({ err: error }, 'an uploaded file is missing in the object store');
          throw downloadError();
        });
      return reply.type(file.mimeType).header('content-length', file.sizeBytes).send(bytes);
    });
  }
}

/** What upstream answers to GET /{media id}, for a file of the WABA; null: it has none under this id. */
export async function mediaObject(context: ExternalContext, request: FastifyRequest<ObjectRoute>) {
  const { wabaId } = accountOf(request);
  const { id } = request.params;
  const upload = await findUpload(context, wabaId, id);
  if (upload !== null) {
    return objectOf(id, `${facadeUrl(context, request)}/uploaded_media/${id}`, upload);
  }
  if (!UPSTREAM_MEDIA_ID.test(id)) return null;
  const media = await storedMedia(context, wabaId, id);
  if (media === null) return null;
  const { objectKey } = media;
  if (media.state !== 'stored' || objectKey === null) throw notStored(media);
  const { mediaUrl } = (await context.mediaUrls.linksOf(wabaId))(objectKey);
  return objectOf(id, mediaUrl, media);
}

function objectOf(
  id: string,
  url: string,
  { mimeType, sha256, sizeBytes }: Pick<ReceivedMedia, 'mimeType' | 'sha256' | 'sizeBytes'>,
) {
  return { messaging_product: 'whatsapp', url, mime_type: mimeType, sha256, file_size: sizeBytes, id };
}

/** Deletes an uploaded file; false: the WABA has none under this id. Received ones are upstream's to delete. */
export async function deleteUpload(context: ExternalContext, wabaId: string, id: string): Promise<boolean> {
  const uuid = uploadUuidOf(id);
  if (uuid === null) return false;
  // Its bytes go with the next round of housekeeping.
  return (await deleteMediaUpload(context.database, wabaId, uuid)) !== null;
}

async function findUpload({ database }: ExternalContext, wabaId: string, id: string) {
  const uuid = uploadUuidOf(id);
  if (uuid === null) return null;
  const [file] = await findMediaUploads(database, wabaId, [uuid]);
  return file === undefined || file.isExpired ? null : file;
}

const LOOK_EVERY_MS = 250;
const WAIT_MS = 10_000;

/** The webhook of a file is often faster than the file: it is waited for. */
async function storedMedia(
  { database }: ExternalContext,
  wabaId: string,
  id: string,
): Promise<ReceivedMedia | null> {
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    const media = await findReceivedMedia(database, wabaId, id);
    if (media?.state !== 'pending' || performance.now() >= deadline) return media;
    await sleep(LOOK_EVERY_MS);
  }
}

function notStored({ state }: ReceivedMedia): FacadeError {
  if (state === 'pending') {
    return new FacadeError(errorParts(131_016, 'The file is still being fetched: ask again.', 503));
  }
  return downloadError();
}

function downloadError(): FacadeError {
  return new FacadeError(errorParts(131_052, 'The file could not be fetched, or is not kept any more.'));
}
