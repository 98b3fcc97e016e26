import { Type } from 'typebox';
import { deleteMediaUpload, forgetMediaUpload } from '../../../database/media-uploads.ts';
import { ObjectStoreUnavailable } from '../../../storage/object-store-error.ts';
import { notFound } from '../../errors/api-error.ts';
import { accountOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { NoQuery } from '../no-query.ts';
import { mediaDocs } from './media-docs.ts';
import { findMedia, UploadedMedia, uploadUuid } from './media-json.ts';

const params = Type.Object({ id: Type.String() });

/** GET /api/external/media/:id: what is known of an uploaded file. */
export function getMedia(app: ExternalApp, { database }: ExternalContext): void {
  const schema = { ...mediaDocs.get, params, querystring: NoQuery, response: { 200: UploadedMedia } };
  app.get('/api/external/media/:id', { schema, config: SCOPES.read }, async (request) => {
    const { wabaId } = accountOf(request);
    return await findMedia(database, wabaId, request.params.id);
  });
}

const Deleted = Type.Object({ id: Type.String(), deleted: Type.Literal(true) });

/** DELETE /api/external/media/:id: the file cannot be sent any more, and its bytes are removed. */
export function deleteMedia(app: ExternalApp, { database, objectStore }: ExternalContext): void {
  const schema = { ...mediaDocs.delete, params, querystring: NoQuery, response: { 200: Deleted } };
  app.delete('/api/external/media/:id', { schema, config: SCOPES.send }, async (request) => {
    const { wabaId } = accountOf(request);
    const { id } = request.params;
    const uuid = uploadUuid(id);
    const objectKey = await deleteMediaUpload(database, wabaId, uuid);
    if (objectKey === null) throw notFound();
    try {
      await objectStore.remove(objectKey);
      await forgetMediaUpload(database, uuid);
    } catch (error) {
      if (!(error instanceof ObjectStoreUnavailable)) throw error;
      request.log.warn({ err: error, mediaId: id }, 'the bytes of a deleted file are removed later');
    }
    return { id, deleted: true as const };
  });
}
