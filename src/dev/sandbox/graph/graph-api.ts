import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { LoggedRequest } from '../request-log.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { hasValidToken } from './bearer-token.ts';
import { registerCatalogProducts } from './catalog-products.ts';
import { invalidParameter, tokenInvalid } from './graph-failure.ts';
import { registerMediaDelete } from './media-delete.ts';
import { registerMediaDownload } from './media-download.ts';
import { registerMediaUpload } from './media-upload.ts';
import { registerMessageTemplates } from './message-templates.ts';
import { registerObjectLookup } from './object-lookup.ts';
import { registerPayments } from './payments.ts';
import { registerPhoneNumbers } from './phone-numbers.ts';
import { registerSendMessage } from './send-message.ts';
import { registerSubscribedApps } from './subscribed-apps.ts';

const MAX_UPLOAD_BYTES = 105 * 1024 * 1024;

/** Notes every request and turns away those without a token. */
function guardRequests(app: FastifyInstance, context: UpstreamContext): void {
  const open = new WeakMap<FastifyRequest, LoggedRequest>();
  app.addHook('onRequest', async (request, reply) => {
    const authorized = hasValidToken(request.headers.authorization, context.accessToken);
    const { id = '' } = request.params as { id?: string };
    const path = request.url.split('?', 1).join('');
    const entry = {
      at: new Date().toISOString(),
      method: request.method,
      path,
      id,
      authorized,
      status: null,
    };
    open.set(request, entry);
    context.requests.add(entry);
    if (!authorized) {
      const { status, body } = tokenInvalid();
      return reply.code(status).send(body);
    }
  });
  app.addHook('onResponse', async (request, reply) => {
    const entry = open.get(request);
    if (entry !== undefined) {
      entry.status = reply.statusCode;
    }
  });
}

/** The part of the server that imitates the upstream platform's own API. */
export async function graphApi(app: FastifyInstance, context: UpstreamContext): Promise<void> {
  guardRequests(app, context);
  app.addContentTypeParser(
    'multipart/form-data',
    { parseAs: 'buffer', bodyLimit: MAX_UPLOAD_BYTES },
    (_request, body, done) => done(null, body),
  );
  app.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) => {
    const { body } = invalidParameter(100, error.message);
    return reply.code(error.statusCode ?? 500).send(body);
  });
  registerObjectLookup(app, context);
  registerMediaDownload(app, context);
  registerMediaUpload(app, context);
  registerMediaDelete(app, context);
  registerPhoneNumbers(app, context);
  registerCatalogProducts(app, context);
  registerMessageTemplates(app, context);
  registerPayments(app, context);
  registerSendMessage(app, context);
  registerSubscribedApps(app, context);
}
