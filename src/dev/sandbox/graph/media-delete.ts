import type { FastifyInstance } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
import { objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute } from './graph-paths.ts';

/** DELETE /{version}/{media}: the media object is gone from now on. */
export function registerMediaDelete(app: FastifyInstance, context: UpstreamContext): void {
  app.delete<GraphObjectRoute>(GRAPH_OBJECT_PATH, async (request, reply) => {
    if (!context.media.remove(request.params.id)) {
      const { status, body } = objectMissing(request.params.id);
      return reply.code(status).send(body);
    }
    return { success: true };
  });
}
