import { type Static, Type } from 'typebox';
import {
  deleteMediaUpload,
  findMediaUploads,
  forgetMediaUpload,
} from '../../../features/messages/send/media-uploads.ts';
import { ObjectStoreUnavailable } from '../../../platform/object-store/store-errors.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { mediaUuidOf, publicMediaId } from '../../../platform/public-ids.ts';
import { notFound } from '../../errors/api-error.ts';
import { count, dateTime, idParams, named, nullable, text } from '../../external/schema-kit.ts';
import { restOperation } from '../../operations/operation.ts';
import { formValidator, takeUpload, UPLOAD_TIMEOUT_MS } from './take-upload.ts';

const EXAMPLE_ID = 'med_019aa3f2c0de7abc8def0123456789ab';

const MediaParams = idParams('The id of the file.', EXAMPLE_ID);

/** Why an upload may be refused. */
export const UPLOAD_ERRORS = [
  'file_too_large',
  'unsupported_file_type',
  'invalid_multipart',
  'request_timeout',
  'too_many_uploads',
  'storage_quota_exceeded',
  'upload_quota_exceeded',
] as const;

/** A form with one file. */
export const UploadBody = Type.Object({
  file: Type.String({ contentMediaType: 'application/octet-stream', description: 'The file.' }),
  type: Type.Optional(
    Type.String({ description: 'Its MIME type. Left out: the Content-Type of the part `file`.' }),
  ),
  messaging_product: Type.Optional(Type.Literal('whatsapp')),
});

const UploadedMedia = named('UploadedMedia', {
  id: text(EXAMPLE_ID),
  mediaType: Type.Enum(['image', 'video', 'audio', 'document', 'sticker']),
  mimeType: text('image/jpeg'),
  sizeBytes: count(48_213),
  sha256: text('9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'),
  fileName: nullable(Type.String(), 'mug.jpg'),
  createdAt: dateTime(),
  expiresAt: dateTime('2026-12-21T09:30:00.000Z'),
});

/** Throws ApiError 404 for a file that has expired, or never was. */
async function findMedia(
  database: Database,
  wabaId: string,
  id: string,
): Promise<Static<typeof UploadedMedia>> {
  const [file] = await findMediaUploads(database, wabaId, [uploadUuid(id)]);
  if (file === undefined || file.isExpired) throw notFound();
  const { uuid, objectKey, isExpired, ...shown } = file;
  return { id, ...shown };
}

/** An id that cannot be one does not exist: throws ApiError 404. */
function uploadUuid(id: string): string {
  const uuid = mediaUuidOf(id);
  if (uuid === null) throw notFound();
  return uuid;
}

const getMedia = restOperation({
  id: 'getMedia',
  method: 'GET',
  path: '/api/external/media/:id',
  scope: 'read',
  summary: 'Get an uploaded file',
  description: 'The description of a file. An expired file returns 404, as an unknown one does.',
  tag: 'Media',
  params: MediaParams,
  answers: { 200: { schema: UploadedMedia, description: 'The file.' } },
  run: ({ database, wabaId }, { id }) => findMedia(database, wabaId, id),
});

const Deleted = Type.Object({ id: UploadedMedia.properties.id, deleted: Type.Literal(true) });

const deleteMedia = restOperation({
  id: 'deleteMedia',
  method: 'DELETE',
  path: '/api/external/media/:id',
  scope: 'send',
  summary: 'Delete an uploaded file',
  description:
    'Messages can no longer name it. A pending message that names it may fail, even if upstream has the file ' +
    'already: delete a file when the messages that name it are sent.',
  tag: 'Media',
  params: MediaParams,
  answers: { 200: { schema: Deleted, description: 'The file was deleted.' } },
  run: async ({ database, wabaId, uploadStore, request }, { id }) => {
    const uuid = uploadUuid(id);
    const objectKey = await deleteMediaUpload(database, wabaId, uuid);
    if (objectKey === null) throw notFound();
    try {
      await uploadStore.remove(objectKey);
      await forgetMediaUpload(database, uuid);
    } catch (error) {
      if (!(error instanceof ObjectStoreUnavailable)) throw error;
      request.log.warn({ err: error, mediaId: id }, 'the bytes of a deleted file are removed later');
    }
    return { id, deleted: true as const };
  },
});

const uploadMedia = restOperation({
  id: 'uploadMedia',
  method: 'POST',
  path: '/api/external/media',
  scope: 'send',
  summary: 'Upload a file to send',
  description:
    'A form with one file. Its `id` stands for the file in messages, where an upstream media id would: ' +
    '`"image": {"id": "med_…"}`. It is given to upstream when the first message of a phone number needs it. Limits: ' +
    'images (JPEG, PNG) 5 MiB, video (MP4, 3GPP) and audio (AAC, AMR, MP3, MP4, OGG with Opus) 16 MiB, documents ' +
    '(text, PDF, Office) 100 MiB, stickers (WebP) 100 KiB or 500 KiB when animated. A form has a minute to arrive. ' +
    'Files are kept for 30 days.',
  tag: 'Media',
  requestType: 'multipart/form-data',
  requests: { image: { file: '(the bytes of mug.jpg)', type: 'image/jpeg' } },
  errors: [...UPLOAD_ERRORS],
  body: UploadBody,
  answers: { 201: { schema: UploadedMedia, description: 'The file can be sent.', headers: ['Location'] } },
  route: {
    validatorCompiler: formValidator,
    config: { readsBody: true },
    handlerTimeout: UPLOAD_TIMEOUT_MS,
  },
  run: async (call) => {
    const { wabaId, request, reply } = call;
    const uuid = await takeUpload(call, request);
    reply.code(201).header('location', `/api/external/media/${publicMediaId(uuid)}`);
    return await findMedia(call.database, wabaId, publicMediaId(uuid));
  },
});

export const MEDIA_OPERATIONS = [getMedia, deleteMedia, uploadMedia];
