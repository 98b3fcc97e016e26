import { Type } from 'typebox';
import { deleteMediaUpload, forgetMediaUpload } from '../../../messages/send/media-uploads.ts';
import { ObjectStoreUnavailable } from '../../../platform/object-store/object-store-error.ts';
import { notFound } from '../../errors/api-error.ts';
import type { ExternalApp, ExternalContext } from '../../external/external-app.ts';
import { NoQuery } from '../../external/schema-kit.ts';
import { accountOf } from '../../keys/api-key-auth.ts';
import { SCOPES } from '../../keys/key-scopes.ts';
import { documented } from '../../openapi/documented.ts';
import { findMedia, MediaParams, UploadedMedia, uploadUuid } from './media-json.ts';

/** GET /api/external/media/:id: what is known of an uploaded file. */
export function getMedia(app: ExternalApp, { database }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'getMedia',
      summary: 'An uploaded file',
      description: 'What is known of a file. One that has expired answers as one that does not exist.',
      tag: 'Media',
      answers: { 200: { description: 'The file.' } },
    }),
    params: MediaParams,
    querystring: NoQuery,
    response: { 200: UploadedMedia },
  };
  app.get('/api/external/media/:id', { schema, config: SCOPES.read }, async (request) => {
    const { wabaId } = accountOf(request);
    return await findMedia(database, wabaId, request.params.id);
  });
}

const Deleted = Type.Object({ id: UploadedMedia.properties.id, deleted: Type.Literal(true) });

/** DELETE /api/external/media/:id: the file cannot be sent any more, and its bytes are removed. */
export function deleteMedia(app: ExternalApp, { database, objectStore }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'deleteMedia',
      summary: 'Delete an uploaded file',
      description:
        'Messages cannot name it any more. One that still waits may fail for want of it, also when upstream has the ' +
        'file already: delete a file when the messages that name it have gone out.',
      tag: 'Media',
      answers: { 200: { description: 'It is gone.' } },
    }),
    params: MediaParams,
    querystring: NoQuery,
    response: { 200: Deleted },
  };
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
