import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import {
  beginMediaUpload,
  checkUploadQuota,
  deleteMediaUpload,
  findMediaUploads,
  finishMediaUpload,
  forgetMediaUpload,
} from '../../../features/messages/send/media-uploads.ts';
import { MAX_UPLOAD_BYTES } from '../../../features/messages/send/uploaded-media.ts';
import { delimiterOf, delimitersIn } from '../../../platform/http/multipart-parts.ts';
import { ObjectStoreUnavailable } from '../../../platform/object-store/store-errors.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { mediaUuidOf, publicMediaId, uuidV7 } from '../../../platform/public-ids.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { ApiError, notFound, unavailable } from '../../errors/api-error.ts';
import type { ExternalContext } from '../../external/external-app.ts';
import { count, dateTime, idParams, named, nullable, text } from '../../external/schema-kit.ts';
import { type Account, accountOf } from '../../keys/api-key-auth.ts';
import { restOperation } from '../../operations/operation.ts';
import { validatorCompiler } from '../../plugins/validation.ts';
import { type FormRules, openUploadForm, type UploadForm } from './upload-form.ts';

const EXAMPLE_ID = 'med_019aa3f2c0de7abc8def0123456789ab';

const MediaParams = idParams('The id of the file.', EXAMPLE_ID);

const UploadBody = Type.Object({
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

/** A large file takes its time; the server itself ends requests that take more than a minute to arrive. */
export const UPLOAD_TIMEOUT_MS = 90_000;

/** Of the form around the file. */
const FORM_BYTES = 64 * 1024;

const KEY_BYTES = 24;

/** The body is a stream: it is checked while it is read. */
export const formValidator: typeof validatorCompiler = (route) =>
  route.httpPart === 'body' ? (value: unknown) => ({ value }) : validatorCompiler(route);

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
  errors: [
    'file_too_large',
    'unsupported_file_type',
    'invalid_multipart',
    'request_timeout',
    'too_many_uploads',
    'storage_quota_exceeded',
    'upload_quota_exceeded',
  ],
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

/** Waits for a slot of the tenant; returns the uuid of the file. Throws ApiError. */
export async function takeUpload(
  context: ExternalContext,
  request: FastifyRequest,
  rules: FormRules = {},
): Promise<string> {
  const account = accountOf(request);
  try {
    checkHead(request);
    // Parts of a request whose client is gone would be waited for without end, and the slot be kept.
    if (request.raw.destroyed) throw new ApiError('invalid_multipart');
    const cut = Promise.withResolvers<never>();
    cut.promise.catch(() => {});
    const release = context.uploadSlots.take(account.tenantId, cut.reject);
    cutManyParts(request, cut.reject);
    const form = openUploadForm(request, cut.promise, rules);
    return await store(context, form, account).finally(release);
  } finally {
    // What is left of a body that was refused is passed over, so that its sender gets to read the answer.
    request.raw.unpipe();
    request.raw.resume();
  }
}

function checkHead(request: FastifyRequest): void {
  if (!request.isMultipart()) {
    const message = 'The body must be multipart/form-data with the part "file".';
    throw new ApiError('unsupported_media_type', { message });
  }
  if (Number(request.headers['content-length'] ?? 0) > MAX_UPLOAD_BYTES + FORM_BYTES) {
    throw new ApiError('file_too_large');
  }
}

/** What a form of one file has, with room. */
const MAX_DELIMITERS = 40;

/** The parser takes a hundred times as long for a part as for its bytes, and goes on with parts behind its limit. */
function cutManyParts({ raw }: FastifyRequest, cut: (error: ApiError) => void): void {
  const delimiter = delimiterOf(raw.headers['content-type'] ?? '');
  if (delimiter === null) {
    cut(new ApiError('invalid_multipart'));
    return;
  }
  let left = MAX_DELIMITERS;
  const onData = (chunk: Buffer): void => {
    left -= delimitersIn(chunk, delimiter, left + 1).length;
    if (left >= 0) return;
    raw.off('data', onData).unpipe();
    cut(new ApiError('invalid_multipart', { message: 'The form has too many parts.' }));
  };
  raw.on('data', onData);
}

/** The row comes before the object, so that housekeeping finds what a process left that died in between. */
async function store(
  { database, uploadStore }: ExternalContext,
  opening: Promise<UploadForm>,
  { wabaId, keyId }: Account,
): Promise<string> {
  const form = await opening;
  await checkUploadQuota(database, wabaId, 1);
  const uuid = uuidV7(Date.now());
  const objectKey = `uploads/${randomBytes(KEY_BYTES).toString('base64url')}`;
  await beginMediaUpload(database, wabaId, { uuid, objectKey, apiKeyId: keyId });
  try {
    await uploadStore.put(objectKey, form.source, { contentType: 'application/octet-stream' });
    await finishMediaUpload(database, wabaId, uuid, form.result());
    return uuid;
  } catch (error) {
    if (error instanceof RequestError) await uploadStore.remove(objectKey);
    // A refused file has left nothing. What a store that failed has kept is unknown: housekeeping removes it.
    if (error instanceof ApiError || error instanceof RequestError) await forgetMediaUpload(database, uuid);
    if (!(error instanceof ObjectStoreUnavailable)) throw error;
    throw unavailable(error);
  }
}

export const MEDIA_OPERATIONS = [getMedia, deleteMedia, uploadMedia];
