import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const BASE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
};

const HSTS = 'max-age=31536000';

/** Sets what every answer carries; a handler may set its own Content-Security-Policy and Cache-Control afterwards. */
export function setBaseHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id).headers(BASE_HEADERS);
  if (request.protocol === 'https') reply.header('strict-transport-security', HSTS);
}

/** Puts the request id and the security headers on every answer. */
export function addBaseHeaders(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    setBaseHeaders(request, reply);
    done();
  });
}
