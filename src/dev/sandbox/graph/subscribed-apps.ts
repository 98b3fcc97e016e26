import type { FastifyInstance } from 'fastify';
import type { UpstreamContext } from '../upstream-context.ts';
import { objectMissing } from './graph-failure.ts';
import { GRAPH_OBJECT_PATH, type GraphObjectRoute } from './graph-paths.ts';

const APP = { id: '700000000000001', name: 'Heliograph sandbox', link: '' };

/** GET /{version}/{account}/subscribed_apps: every account of the sandbox sends to the one app. */
export function registerSubscribedApps(app: FastifyInstance, context: UpstreamContext): void {
  app.get<GraphObjectRoute>(`${GRAPH_OBJECT_PATH}/subscribed_apps`, async (request, reply) => {
    const { id } = request.params;
    if (context.phones.ofWaba(id).length === 0) {
      const { status, body } = objectMissing(id);
      return reply.code(status).send(body);
    }
    return { data: [{ whatsapp_business_api_data: APP }] };
  });
}
