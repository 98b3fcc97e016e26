import { type Static, Type } from 'typebox';
import { findMediaUploads } from '../../../messages/send/media-uploads.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { mediaUuidOf } from '../../../platform/public-ids.ts';
import { notFound } from '../../errors/api-error.ts';
import { count, dateTime, idParams, nullable, text } from '../../external/schema-kit.ts';

const EXAMPLE_ID = 'med_019aa3f2c0de7abc8def0123456789ab';

export const MediaParams = idParams('The id of the file.', EXAMPLE_ID);

/** The form of an upload, for the description of the API. */
export const UploadBody = Type.Object({
  file: Type.String({ contentMediaType: 'application/octet-stream', description: 'The file.' }),
  type: Type.Optional(
    Type.String({ description: 'Its MIME type. Left out: the Content-Type of the part `file`.' }),
  ),
  messaging_product: Type.Optional(Type.Literal('whatsapp')),
});

/** A file as answers describe it. */
export const UploadedMedia = Type.Object(
  {
    id: text(EXAMPLE_ID),
    mediaType: Type.Enum(['image', 'video', 'audio', 'document', 'sticker']),
    mimeType: text('image/jpeg'),
    sizeBytes: count(48_213),
    sha256: text('9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'),
    fileName: nullable(Type.String(), 'mug.jpg'),
    createdAt: dateTime(),
    expiresAt: dateTime('2026-12-21T09:30:00.000Z'),
  },
  { title: 'UploadedMedia' },
);

/** A file of the WABA by its public id. Throws ApiError 404 for one that has expired, or never was. */
export async function findMedia(
  database: Database,
  wabaId: string,
  id: string,
): Promise<Static<typeof UploadedMedia>> {
  const [file] = await findMediaUploads(database, wabaId, [uploadUuid(id)]);
  if (file === undefined || file.isExpired) throw notFound();
  const { mediaType, mimeType, sizeBytes, sha256, fileName, createdAt, expiresAt } = file;
  return {
    ...{ id, mediaType, mimeType, sizeBytes, sha256, fileName },
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
  };
}

/** The uuid in a public id. What cannot be one is answered as what does not exist: throws ApiError 404. */
export function uploadUuid(id: string): string {
  const uuid = mediaUuidOf(id);
  if (uuid === null) throw notFound();
  return uuid;
}
