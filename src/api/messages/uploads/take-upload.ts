import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import {
  beginMediaUpload,
  checkUploadQuota,
  finishMediaUpload,
  forgetMediaUpload,
} from '../../../features/messages/send/media-uploads.ts';
import { MAX_UPLOAD_BYTES } from '../../../features/messages/send/uploaded-media.ts';
import { delimiterOf, delimitersIn } from '../../../platform/http/multipart-parts.ts';
import { ObjectStoreUnavailable } from '../../../platform/object-store/store-errors.ts';
import { uuidV7 } from '../../../platform/public-ids.ts';
import { RequestError } from '../../../platform/request-input.ts';
import { ApiError, unavailable } from '../../errors/api-error.ts';
import type { ExternalContext } from '../../external/external-app.ts';
import { type Account, accountOf } from '../../keys/api-key-auth.ts';
import { validatorCompiler } from '../../plugins/validation.ts';
import { type FormRules, openUploadForm, type UploadForm } from './upload-form.ts';

/** A large file takes its time; the server itself ends requests that take more than a minute to arrive. */
export const UPLOAD_TIMEOUT_MS = 90_000;

/** Of the form around the file. */
const FORM_BYTES = 64 * 1024;

const KEY_BYTES = 24;

/** The body is a stream: it is checked while it is read. */
export const formValidator: typeof validatorCompiler = (route) =>
  route.httpPart === 'body' ? (value: unknown) => ({ value }) : validatorCompiler(route);

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
