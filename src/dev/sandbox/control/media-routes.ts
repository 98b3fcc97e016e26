import type { FastifyInstance } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
import { ControlError } from './control-error.ts';

const MAX_MEDIA_BYTES = 110 * 1024 * 1024;

/** What a page that shows the bytes cannot take for a page of its own. */
const HARMLESS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "sandbox; default-src 'none'",
} as const;

type MediaRoute = { Body: unknown; Querystring: { filename?: string } };

/** POST /sandbox/media?filename= keeps the raw bytes of the body, of the type in its header; GET hands them out. */
export async function mediaRoutes(app: FastifyInstance, context: UpstreamContext): Promise<void> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: MAX_MEDIA_BYTES }, (_request, body, done) =>
    done(null, body),
  );
  app.get<{ Params: { id: string } }>('/sandbox/media/:id', async (request, reply) => {
    const media = context.media.find(request.params.id);
    if (media === undefined) {
      throw new ControlError(404, 'unknown_media', `No media ${request.params.id}.`);
    }
    return reply.type(media.mimeType).headers(HARMLESS).send(media.bytes);
  });
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
