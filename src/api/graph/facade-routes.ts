import type { FastifyInstance } from 'fastify';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { requireApiKey, SCOPES } from '../keys/api-key-auth.ts';
import { refuseNullBody, refuseWhileClosing, requireStorableValues } from '../plugins/request-hooks.ts';
import { guardBodies } from '../shares/client-shares.ts';
import { notPassedOn, sendFacadeError } from './facade-error.ts';
import { refuseKeyInQuery, takeTokenFromQuery } from './facade-paths.ts';
import { facadeDownloads, facadeUploads } from './media-routes.ts';
import { facadePasses } from './pass-routes.ts';
import { readMessageForms } from './send-forms.ts';
import { facadeSends } from './send-routes.ts';
import { facadeThreads } from './thread-routes.ts';

const HANDLER_TIMEOUT_MS = 15_000;
const BODY_LIMITS = {
  maxBytes: 64 * 1024 * 1024,
  maxBytesPerOwner: 16 * 1024 * 1024,
  untilAnswered: true,
} as const;

/**
 * `/graph/v26.0/…`: upstream's own API for software that speaks nothing else. An API key takes the place of the access
 * token; every answer, errors too, is in upstream's form.
 */
export async function facadeRoutes(scope: FastifyInstance, context: ExternalContext): Promise<void> {
  scope.setErrorHandler(sendFacadeError);
  scope.addHook('onRoute', (route) => {
    route.handlerTimeout ??= HANDLER_TIMEOUT_MS;
  });
  refuseWhileClosing(scope);
  guardBodies(scope, BODY_LIMITS);
  scope.decorateRequest('queryToken', null);
  scope.addHook('onRequest', (request, _reply, done) => {
    takeTokenFromQuery(request);
    done();
  });
  await scope.register(async (secured: ExternalApp) => {
    requireApiKey(secured as unknown as FastifyInstance, context);
    secured.addHook('onRequest', async (request) => refuseKeyInQuery(request));
    refuseNullBody(secured as unknown as FastifyInstance);
    requireStorableValues(secured as unknown as FastifyInstance);
    secured.register(async (forms: ExternalApp) => {
      readMessageForms(forms);
      facadeSends(forms, context);
    });
    facadeThreads(secured, context);
    facadeUploads(secured, context);
    facadeDownloads(secured, context);
    facadePasses(secured, context);
    for (const url of ['/graph', '/graph/*']) {
      secured.route({
        method: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
        url,
        config: SCOPES.graphRead,
        exposeHeadRoute: false,
        onRequest: async () => {
          throw notPassedOn();
        },
        handler: async () => null,
      });
    }
  });
}
