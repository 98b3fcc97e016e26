import type { FastifyInstance } from 'fastify';
import { connectionTest } from '../accounts/connection-test.ts';
import { requireApiKey } from '../keys/api-key-auth.ts';
import { openApiDocumentRoute } from '../openapi/document-routes.ts';
import { addOperations } from '../operations/operation-route.ts';
import { OPERATIONS } from '../operations/operations.ts';
import { refuseNullBody, refuseWhileClosing, requireStorableValues } from '../plugins/request-hooks.ts';
import { guardBodies } from '../shares/client-shares.ts';
import type { ExternalApp, ExternalContext } from './external-app.ts';

const HANDLER_TIMEOUT_MS = 15_000;

const BODY_LIMITS = {
  maxBytes: 64 * 1024 * 1024,
  maxBytesPerOwner: 16 * 1024 * 1024,
  untilAnswered: true,
} as const;

/** The External API: everything but the connection test needs an API key. */
export async function externalRoutes(scope: FastifyInstance, context: ExternalContext): Promise<void> {
  scope.addHook('onRoute', (route) => {
    route.handlerTimeout ??= HANDLER_TIMEOUT_MS;
  });
  scope.addHook('onClose', async () => {
    const { limits, sends, upstream } = context;
    limits.close();
    await Promise.all([sends.outcomes.close(), upstream.close()]);
  });
  refuseWhileClosing(scope);
  guardBodies(scope, BODY_LIMITS);
  refuseNullBody(scope);
  requireStorableValues(scope);
  connectionTest(scope);
  openApiDocumentRoute(scope);
  await scope.register(async (secured: ExternalApp) => {
    requireApiKey(secured as unknown as FastifyInstance, context);
    addOperations(secured, context, OPERATIONS);
  });
}
