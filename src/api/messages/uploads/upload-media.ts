import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import {
  beginMediaUpload,
  finishMediaUpload,
  forgetMediaUpload,
} from '../../../messages/send/media-uploads.ts';
import { MAX_UPLOAD_BYTES } from '../../../messages/send/uploaded-media.ts';
import { ObjectStoreUnavailable } from '../../../platform/object-store/object-store-error.ts';
import { publicMediaId } from '../../../platform/public-ids.ts';
import { uuidV7 } from '../../../platform/uuid-v7.ts';
import { ApiError } from '../../errors/api-error.ts';
import type { ExternalApp, ExternalContext } from '../../external/external-app.ts';
import { NoQuery } from '../../external/schema-kit.ts';
import { accountOf } from '../../keys/api-key-auth.ts';
import { SCOPES } from '../../keys/key-scopes.ts';
import { documented } from '../../openapi/documented.ts';
import { validatorCompiler } from '../../plugins/validation.ts';
import { findMedia, UploadBody, UploadedMedia } from './media-json.ts';
import { openUploadForm, type UploadForm } from './upload-form.ts';
import { makeUploadSlots } from './upload-slots.ts';

/** A large file takes its time; the server itself ends requests that take more than a minute to arrive. */
const HANDLER_TIMEOUT_MS = 90_000;

/** Of the form around the file. */
const FORM_BYTES = 64 * 1024;

const KEY_BYTES = 24;

const docs = documented({
  operationId: 'uploadMedia',
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
  ],
  answers: { 201: { description: 'The file can be sent.', headers: ['Location'] } },
});

/** POST /api/external/media: takes a file for sends, streamed into the object store. */
export function uploadMedia(app: ExternalApp, context: ExternalContext): void {
  const schema = {
    ...docs,
    querystring: NoQuery,
    body: UploadBody,
    response: { 201: UploadedMedia },
  };
  const slots = makeUploadSlots();
  const options = {
    schema,
    validatorCompiler: formValidator,
    config: { ...SCOPES.send, readsBody: true },
    handlerTimeout: HANDLER_TIMEOUT_MS,
  };
  app.post('/api/external/media', options, async (request, reply) => {
    const { wabaId } = accountOf(request);
    try {
      checkHead(request);
      // Parts of a request whose client is gone would be waited for without end, and the slot be kept.
      if (request.raw.destroyed) throw new ApiError('invalid_multipart');
      const cut = Promise.withResolvers<never>();
      cut.promise.catch(() => {});
      const release = slots.take(wabaId, cut.reject);
      const form = openUploadForm(request, cut.promise);
      const uuid = await store(context, form, wabaId).finally(release);
      reply.code(201).header('location', `/api/external/media/${publicMediaId(uuid)}`);
      return await findMedia(context.database, wabaId, publicMediaId(uuid));
    } finally {
      // What is left of a body that was refused is passed over, so that its sender gets to read the answer.
      request.raw.unpipe();
      request.raw.resume();
    }
  });
}

/** The body is a stream: it is checked while it is read. */
const formValidator: typeof validatorCompiler = (route) =>
  route.httpPart === 'body' ? (value: unknown) => ({ value }) : validatorCompiler(route);

function checkHead(request: FastifyRequest): void {
  if (!request.isMultipart()) {
    const message = 'The body must be multipart/form-data with the part "file".';
    throw new ApiError('unsupported_media_type', { message });
  }
  if (Number(request.headers['content-length'] ?? 0) > MAX_UPLOAD_BYTES + FORM_BYTES) {
    throw new ApiError('file_too_large');
  }
}

/**
 * Stores the file of a form and returns its uuid. The row comes before the object, so that housekeeping finds what a
 * process left that died in between.
 */
async function store(
  { database, objectStore }: ExternalContext,
  opening: Promise<UploadForm>,
  wabaId: string,
): Promise<string> {
  const form = await opening;
  const uuid = uuidV7(Date.now());
  const objectKey = `uploads/${randomBytes(KEY_BYTES).toString('base64url')}`;
  await beginMediaUpload(database, wabaId, { uuid, objectKey });
  try {
    await objectStore.put(objectKey, form.source, { contentType: 'application/octet-stream' });
    await finishMediaUpload(database, wabaId, uuid, form.result());
    return uuid;
  } catch (error) {
    // A refused file has left nothing. Of a store that failed nobody knows: housekeeping looks after it.
    if (error instanceof ApiError) await forgetMediaUpload(database, uuid);
    if (!(error instanceof ObjectStoreUnavailable)) throw error;
    throw new ApiError('service_unavailable', { cause: error, headers: { 'retry-after': '2' } });
  }
}
