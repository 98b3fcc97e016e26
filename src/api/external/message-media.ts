import { Type } from 'typebox';
import { findInboundMedia } from '../../database/message-media.ts';
import { notFound } from '../errors/api-error.ts';
import { accountOf } from '../plugins/api-key-auth.ts';
import { SCOPES } from '../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from './external-app.ts';
import { MediaError, mediaAddress, mediaDescription, mediaErrorOf } from './media-members.ts';
import { messageDocs } from './message-docs.ts';
import { NoQuery } from './no-query.ts';
import { nullable } from './nullable.ts';
import { objectId } from './object-id.ts';

const StoredMedia = Type.Object(
  {
    serviceMessageId: Type.String(),
    metaMessageId: Type.String(),
    mediaPending: Type.Boolean(),
    mediaType: nullable(Type.String()),
    mimeType: nullable(Type.String()),
    mediaPath: nullable(Type.String()),
    mediaUrl: nullable(Type.String()),
    caption: Type.Optional(Type.String()),
    fileName: Type.Optional(Type.String()),
    sizeBytes: nullable(Type.Integer()),
    sha256: nullable(Type.String()),
    mediaError: Type.Optional(MediaError),
  },
  { title: 'MessageMedia' },
);

/** GET /api/external/messages/:id/media: the media of an inbound message, also while it is awaited. */
export function messageMedia(app: ExternalApp, { database, publicUrl }: ExternalContext): void {
  const schema = {
    ...messageDocs.media,
    params: Type.Object({ id: Type.String() }),
    querystring: NoQuery,
    response: { 200: StoredMedia },
  };
  app.get('/api/external/messages/:id/media', { schema, config: SCOPES.read }, async (request) => {
    const { wabaId } = accountOf(request);
    const media = await findInboundMedia(database, wabaId, objectId(request.params.id));
    if (media === null) throw notFound();
    return {
      serviceMessageId: media.id,
      metaMessageId: media.upstreamId,
      mediaPending: media.mediaState === 'pending',
      mediaType: media.mediaType,
      mimeType: media.mimeType,
      ...mediaAddress(media, publicUrl),
      ...mediaDescription(media),
      sizeBytes: media.sizeBytes === null ? null : Number(media.sizeBytes),
      sha256: media.sha256,
      ...mediaErrorOf(media),
    };
  });
}
