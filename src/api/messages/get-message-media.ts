import { Type } from 'typebox';
import { findMessage } from '../../features/messages/conversations/message-detail.ts';
import { findReceivedMedia } from '../../features/messages/conversations/message-list.ts';
import { isFileErased } from '../../features/messages/media/media.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { ApiError, notFound } from '../errors/api-error.ts';
import { named, nullable, objectPath, text } from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';
import { MediaError, mediaAddress, mediaDescription, mediaErrorOf } from './message-json.ts';

const PATH = '/received_media/pP0mK1v3rQ9sZ2xYb7Lw4tNc6uHd8eFa';

const StoredMedia = named('MessageMedia', {
  serviceMessageId: text('1042'),
  metaMessageId: text('wamid.HBgLMTIwMjU1NTAxNDMVAgASGBQzQUEyOUI4MDVFNjE0NEU0NzgwMAA='),
  mediaPending: Type.Boolean(),
  mediaType: nullable(Type.String(), 'image'),
  mimeType: nullable(Type.String(), 'image/jpeg'),
  mediaPath: nullable(Type.String(), PATH),
  mediaUrl: nullable(Type.String(), `https://gateway.example${PATH}`),
  caption: Type.Optional(text('Front door')),
  fileName: Type.Optional(Type.String()),
  sizeBytes: nullable(Type.Integer(), 184_233),
  sha256: nullable(Type.String(), '7d0b1f6a4b0f5c1f6f0f9a6d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a09'),
  mediaError: Type.Optional(MediaError),
});

export const getMessageMedia = restOperation({
  id: 'getMessageMedia',
  method: 'GET',
  path: '/api/external/messages/:id/media',
  scope: 'read',
  summary: 'Get the media of a message',
  description:
    'Of an inbound message, or one of the WhatsApp Business app, also while they are pending. `mediaUrl` needs no API key.',
  tag: 'Media',
  errors: ['erased'],
  ...objectPath('The `serviceMessageId`.', '1042'),
  answers: { 200: { schema: StoredMedia, description: 'The media.' } },
  run: async ({ database, wabaId, mediaUrls }, { id: messageId }) => {
    const media = await findReceivedMedia(database, wabaId, messageId);
    if (media === null) throw await withoutMedia(database, wabaId, messageId);
    if (media.mediaState === 'expired') throw new ApiError('erased');
    return {
      serviceMessageId: media.id,
      metaMessageId: media.upstreamId,
      mediaPending: media.mediaState === 'pending',
      mediaType: media.mediaType,
      mimeType: media.mimeType,
      ...mediaAddress(media, await mediaUrls.linksOf(wabaId)),
      ...mediaDescription(media),
      sizeBytes: media.sizeBytes === null ? null : Number(media.sizeBytes),
      sha256: media.sha256,
      ...mediaErrorOf(media),
    };
  },
});

/** Of another WABA's message it says only that there is none. */
async function withoutMedia(database: Database, wabaId: string, messageId: string): Promise<ApiError> {
  if (await isFileErased(database, wabaId, messageId)) return new ApiError('erased');
  if ((await findMessage(database, wabaId, messageId)) === null) return notFound();
  return new ApiError('not_found', { message: `Message ${messageId} has no received media.` });
}
