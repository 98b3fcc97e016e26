import type { FastifyInstance } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
import { ControlError } from './control-error.ts';

const MAX_MEDIA_BYTES = 110 * 1024 * 1024;

type MediaRoute = { Body: unknown; Querystring: { filename?: string } };

/** POST /sandbox/media?filename=: keeps the raw bytes of the body, of the type in its header. */
export async function mediaRoutes(app: FastifyInstance, context: UpstreamContext): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: MAX_MEDIA_BYTES }, (_request, body, done) =>
    done(null, body),
  );
  app.post<MediaRoute>('/sandbox/media', { bodyLimit: MAX_MEDIA_BYTES }, async (request) => {
    const { body, headers, query } = request;
    if (!Buffer.isBuffer(body) || body.length === 0) {
      throw new ControlError(
        400,
        'empty_media',
        'Send the bytes of the media as the body, with a content type.',
      );
    }
    const media = context.media.put({
      bytes: body,
      mimeType: headers['content-type'] ?? 'application/octet-stream',
      ...(query.filename === undefined ? {} : { filename: query.filename }),
    });
    return {
      id: media.id,
      sha256: media.sha256Base64,
      sizeBytes: media.bytes.length,
      mimeType: media.mimeType,
    };
  });
}
