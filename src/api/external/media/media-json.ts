import { type Static, Type } from 'typebox';
import type { Database } from '../../../database/database.ts';
import { findMediaUploads } from '../../../database/media-uploads.ts';
import { mediaUuidOf } from '../../../domain/public-ids.ts';
import { notFound } from '../../errors/api-error.ts';
import { nullable } from '../nullable.ts';

/** The form of an upload, for the description of the API. */
export const UploadBody = Type.Object({
  file: Type.String({ contentMediaType: 'application/octet-stream', description: 'The file.' }),
  type: Type.Optional(
    Type.String({ description: 'Its MIME type. Left out: the Content-Type of the part `file`.' }),
  ),
  messaging_product: Type.Optional(Type.Literal('whatsapp')),
});

export const UploadedMedia = Type.Object(
  {
    id: Type.String(),
    mediaType: Type.Enum(['image', 'video', 'audio', 'document', 'sticker']),
    mimeType: Type.String(),
    sizeBytes: Type.Integer(),
    sha256: Type.String(),
    fileName: nullable(Type.String()),
    createdAt: Type.String({ format: 'date-time' }),
    expiresAt: Type.String({ format: 'date-time' }),
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
