import {
  deleteMediaUpload,
  findMediaUploads,
  type MediaUpload,
} from '../../features/messages/send/media-uploads.ts';
import { HANDLE_MIME_TYPES } from '../../features/messages/send/uploaded-media.ts';
import { SESSION_TIMEOUT_MS, uploadForHandle } from '../../platform/graph/graph-uploads.ts';
import { ObjectStoreUnavailable } from '../../platform/object-store/store-errors.ts';
import { unavailable } from '../errors/api-error.ts';
import type { ExternalContext } from '../external/external-app.ts';
import { named, text } from '../external/schema-kit.ts';
import { callUpstream } from '../external/upstream-calls.ts';
import { UPLOAD_ERRORS, UploadBody } from '../messages/uploads/media-routes.ts';
import { formValidator, takeUpload, UPLOAD_TIMEOUT_MS } from '../messages/uploads/take-upload.ts';
import { restOperation } from '../operations/operation.ts';

export const uploadTemplateMedia = restOperation({
  id: 'uploadTemplateMedia',
  method: 'POST',
  path: '/api/external/template-media',
  scope: 'send',
  summary: 'Upload the example of a template header',
  description:
    'A form with one file, which is given to upstream at once and not kept here. Its `handle` goes into the header of the template ' +
    'that is created, `"example": {"header_handle": ["…"]}`, or into `profile_picture_handle` of a profile; both are calls of ' +
    'the Cloud API. A message that is made from the template names an uploaded file (`med_…`) or a link, ' +
    'never a handle. Limits: images (JPEG, PNG) 5 MiB, video (MP4) 16 MiB, documents (PDF) 100 MiB.',
  tag: 'Templates',
  requestType: 'multipart/form-data',
  requests: { image: { file: '(the bytes of mug.jpg)', type: 'image/jpeg' } },
  errors: [...UPLOAD_ERRORS, 'upstream_refused', 'access_token_missing', 'upstream_unavailable'],
  body: UploadBody,
  answers: {
    200: {
      schema: named('TemplateMedia', {
        handle: text('4::aW1hZ2UvanBlZw==:ARbP0Kxample'),
      }),
      description: 'Upstream has the file.',
    },
  },
  route: {
    validatorCompiler: formValidator,
    config: { readsBody: true },
    handlerTimeout: UPLOAD_TIMEOUT_MS + SESSION_TIMEOUT_MS,
  },
  run: async (call) => {
    const { database, wabaId, request } = call;
    const uuid = await takeUpload(call, request, { mimeTypes: HANDLE_MIME_TYPES });
    try {
      const [file] = await findMediaUploads(database, wabaId, [uuid]);
      if (file === undefined) throw new Error('the uploaded file is gone');
      return { handle: await giveForHandle(call, wabaId, file) };
    } finally {
      // Its bytes go with the next round of housekeeping.
      await deleteMediaUpload(database, wabaId, uuid);
    }
  },
});

async function giveForHandle(
  context: Pick<ExternalContext, 'uploadStore' | 'accounts' | 'upstream'>,
  wabaId: string,
  { objectKey, mimeType, fileName, sizeBytes }: MediaUpload,
): Promise<string> {
  const body = await context.uploadStore.getRange(objectKey).catch((error: unknown) => {
    throw error instanceof ObjectStoreUnavailable ? unavailable(error) : error;
  });
  try {
    const file = { mimeType, fileName: fileName ?? 'file', sizeBytes, body };
    return await callUpstream(context, wabaId, (client, token) =>
      uploadForHandle((call) => client.passOn({ ...call, version: undefined, token }), file),
    );
  } finally {
    body.destroy();
  }
}
