import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { Config } from '../../platform/config/config.ts';
import { storableProblem } from '../../platform/schema/problems.ts';
import type { ApiMetrics, NoteRequest } from '../api-metrics.ts';
import { ApiError, invalidParameter } from '../errors/api-error.ts';

const RETRY_AFTER_SECONDS = '1';

/**
 * While a process is about to stop it still serves whatever comes, because load balancers need a moment to notice.
 * Its responses ask clients to close their connections, so that the next request finds another process.
 */
export function closeConnectionsWhileDraining(app: FastifyInstance, isDraining: () => boolean): void {
  app.addHook('onRequest', (_request, reply, done) => {
    if (isDraining()) reply.header('connection', 'close');
    done();
  });
}

/**
 * Once the server closes, requests of this scope that still come over open connections get 503. They have done
 * nothing, so clients can repeat all of them.
 */
export function refuseWhileClosing(scope: FastifyInstance): void {
  let isClosing = false;
  scope.addHook('preClose', async () => {
    isClosing = true;
  });
  scope.addHook('onRequest', (_request, _reply, done) => {
    done(isClosing ? closing() : undefined);
  });
}

function closing(): ApiError {
  return new ApiError('service_unavailable', {
    message: 'This process is stopping. Another one will answer.',
    headers: { 'retry-after': RETRY_AFTER_SECONDS, connection: 'close' },
  });
}

const BASE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
};

const HSTS = 'max-age=31536000';

declare module 'fastify' {
  interface FastifyInstance {
    /** Browsers reach it by https only, whatever this process sees of it. */
    isHttpsOnly: boolean;
  }
}

/** A handler may set its own Content-Security-Policy and Cache-Control afterwards. */
export function setBaseHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id).headers(BASE_HEADERS);
  // Over http, browsers leave it aside.
  if (request.server.isHttpsOnly) reply.header('strict-transport-security', `${HSTS}; includeSubDomains`);
  else if (request.protocol === 'https') reply.header('strict-transport-security', HSTS);
}

export function addBaseHeaders(app: FastifyInstance, { mode }: Pick<Config, 'mode'>): void {
  app.decorate('isHttpsOnly', mode === 'production');
  app.addHook('onRequest', (request, reply, done) => {
    setBaseHeaders(request, reply);
    done();
  });
}

const PROXY_LOG_EVERY_MS = 3_600_000;

/**
 * Notices a proxy whose X-Forwarded-For does not count: a metric counts its requests, and the log names it at most once
 * an hour. Strangers can make the header up, so nothing that is public tells of it.
 */
export function noticeUntrustedProxy(
  app: FastifyInstance,
  { noteUntrustedProxy }: ApiMetrics,
  now: () => number,
): void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  app.addHook('onRequest', (request, _reply, done) => {
    const forwarded = request.headers['x-forwarded-for'];
    const peer = request.raw.socket.remoteAddress;
    if (forwarded !== undefined && request.ip === peer && !forwarded.includes(peer)) {
      noteUntrustedProxy();
      if (now() - loggedAt < PROXY_LOG_EVERY_MS) return done();
      loggedAt = now();
      request.log.warn(
        { peer },
        'X-Forwarded-For came from an address that HELIOGRAPH_TRUST_PROXY does not name: if that is your reverse proxy, all clients count as one; if not, a client made it up',
      );
    }
    done();
  });
}

const MAX_PARAM_CHARS = 200;

/** Refuses bodies and queries of this scope that hold what cannot be stored as it came: U+0000, half characters, endless nesting, huge numbers. */
export function requireStorableValues(scope: FastifyInstance): void {
  scope.addHook('preValidation', (request, _reply, done) => {
    const problem = storableProblem(request.body ?? null) ?? storableProblem(request.query);
    if (problem === null) return done();
    done(invalidParameter(problem.param.slice(0, MAX_PARAM_CHARS), problem.message));
  });
}

/** Refuses the JSON value null as a body: Fastify validates it as if there were none. */
export function refuseNullBody(scope: FastifyInstance): void {
  scope.addHook('preValidation', (request, _reply, done) => {
    if (request.body !== null) return done();
    done(invalidParameter('', 'The body must be a JSON object.'));
  });
}

/**
 * Counts every request once it is answered. Each route that comes after this notes under its own name, made with
 * the route, so that nothing is looked up per request; what is no route is one name for all.
 */
export function addRequestMetrics(app: FastifyInstance, metrics: ApiMetrics): void {
  const noteUnknown = metrics.operation('unknown');
  app.addHook('onRoute', (route) => {
    route.onResponse = [hookOf(noteOf(metrics, route)), ...[route.onResponse ?? []].flat()];
  });
  app.addHook('onResponse', (request, reply, done) => {
    if (request.is404) noteUnknown(reply.statusCode, reply.elapsedTime / 1_000);
    done();
  });
}

function hookOf(note: NoteRequest) {
  return (_request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    note(reply.statusCode, reply.elapsedTime / 1_000);
    done();
  };
}

function noteOf(metrics: ApiMetrics, { url, method, schema }: RouteOptions): NoteRequest {
  if (url === '/upstream/webhook' && method === 'POST') return metrics.upstreamRequest;
  const operationId = schema !== undefined && 'operationId' in schema ? schema.operationId : undefined;
  if (typeof operationId === 'string') return metrics.operation(operationId);
  if (/^\/(portal|setup)(\/|$)/.test(url)) return metrics.operation('portal');
  return metrics.operation(url.startsWith('/received_media/') ? 'receivedMedia' : 'other');
}
