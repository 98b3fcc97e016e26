import { documented } from '../../openapi/documented.ts';

const MEDIA = {
  id: 'med_019aa3f2c0de7abc8def0123456789ab',
  mediaType: 'image',
  mimeType: 'image/jpeg',
  sizeBytes: 48213,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  fileName: 'mug.jpg',
  createdAt: '2026-11-21T09:30:00.000Z',
  expiresAt: '2026-12-21T09:30:00.000Z',
};

/** What the document says about files to send. */
export const mediaDocs = {
  upload: documented({
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
    answers: { 201: { description: 'The file can be sent.', example: MEDIA, headers: ['Location'] } },
  }),
  get: documented({
    operationId: 'getMedia',
    summary: 'An uploaded file',
    description: 'What is known of a file. One that has expired answers as one that does not exist.',
    tag: 'Media',
    parameters: { id: { description: 'The id of the file.', example: MEDIA.id } },
    answers: { 200: { description: 'The file.', example: MEDIA } },
  }),
  delete: documented({
    operationId: 'deleteMedia',
    summary: 'Delete an uploaded file',
    description:
      'Messages cannot name it any more. One that still waits may fail for want of it, also when upstream has the ' +
      'file already: delete a file when the messages that name it have gone out.',
    tag: 'Media',
    parameters: { id: { description: 'The id of the file.', example: MEDIA.id } },
    answers: { 200: { description: 'It is gone.', example: { id: MEDIA.id, deleted: true } } },
  }),
};
