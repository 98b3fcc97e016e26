import type { FastifyInstance } from 'fastify';
import { rejectForeignPages } from '../loopback-requests.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { registerChatRoutes } from './chat-routes.ts';
import { registerFaultRoutes } from './fault-routes.ts';
import { registerInboundRoutes } from './inbound-routes.ts';
import { mediaRoutes } from './media-routes.ts';
import { registerWebhookRoutes } from './webhook-routes.ts';

/** The part of the server with which tests and the command line steer it. */
export async function controlApi(app: FastifyInstance, context: UpstreamContext): Promise<void> {
  rejectForeignPages(app);
  app.setErrorHandler<Error & { statusCode?: number; code?: string }>((error, _request, reply) => {
    const statusCode = error.statusCode ?? 500;
    const code = statusCode === 500 ? 'internal' : (error.code ?? 'invalid_request');
    return reply.code(statusCode).send({ error: { code, message: error.message } });
  });
  registerFaultRoutes(app, context);
  registerWebhookRoutes(app, context);
  registerInboundRoutes(app, context);
  registerChatRoutes(app, context);
  await app.register((scope) => mediaRoutes(scope, context));
}
