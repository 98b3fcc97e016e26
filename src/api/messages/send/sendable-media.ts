import { type MediaUse, mediaUsesOf } from '../../../messages/send/files-in-message.ts';
import { findMediaUploads } from '../../../messages/send/media-uploads.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { ApiError } from '../../errors/api-error.ts';
import { mergeExtra } from './extra-members.ts';
import type { SendRequest } from './send-body.ts';
import { messageOf } from './upstream-payload.ts';

/** Makes sure that the WABA has the files of ours that a message names. Throws ApiError 422, which names the member. */
export async function checkMedia(database: Database, wabaId: string, request: SendRequest): Promise<void> {
  const uses = mediaUsesOf(mergeExtra(messageOf(request), request.extra ?? {}));
  if (uses.length === 0) return;
  const uuids = new Set(uses.flatMap(({ uuid }) => uuid ?? []));
  const found = await findMediaUploads(database, wabaId, [...uuids]);
  const files = new Map(found.map((file) => [file.uuid, file]));
  for (const use of uses) checkUse(use, files.get(use.uuid ?? ''));
}

function checkUse(
  { param, kind }: MediaUse,
  file: { mediaType: string; mimeType: string; isExpired: boolean } | undefined,
): void {
  if (file === undefined) throw new ApiError('unknown_media', { param });
  if (file.isExpired) throw new ApiError('media_expired', { param });
  if (file.mediaType === kind) return;
  const message = `The file is of type ${file.mediaType} (${file.mimeType}) and cannot be sent as ${kind}.`;
  throw new ApiError('wrong_media_type', { param, message });
}
