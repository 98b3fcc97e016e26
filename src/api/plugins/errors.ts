import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../errors/api-error.ts';
import { classifyError } from '../errors/classify-error.ts';
import { errorBody } from '../errors/error-body.ts';
import { setBaseHeaders } from './security-headers.ts';

/** Turns anything thrown into the one error shape, and logs what somebody must look into. */
export function makeErrorSender(publicUrl: string) {
  return (thrown: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const error = classifyError(thrown);
    logError(error, request);
    setBaseHeaders(request, reply);
    reply
      .code(error.status)
      .headers(error.headers)
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(errorBody(error, { publicUrl, requestId: request.id }, error.extras)));
  };
}

/** Error = a defect that someone must mend. What is away for a while is a warning; readiness tells about it. */
function logError(error: ApiError, request: FastifyRequest): void {
  if (error.status < 500) return;
  const line = { err: error.cause ?? error, method: request.method, route: request.routeOptions.url };
  const isElsewhere = error.code === 'service_unavailable' || error.code === 'upstream_unavailable';
  if (isElsewhere) request.log.warn(line, 'request could not be answered');
  else request.log.error(line, 'request failed');
}

/** One handler for every error; what is no request for any route is refused before a body is read. */
export function addErrorHandling(app: FastifyInstance, publicUrl: string): void {
  app.setErrorHandler(makeErrorSender(publicUrl));
  // For routes that find out themselves that there is nothing, such as those of static files.
  app.setNotFoundHandler(() => {
    throw new ApiError('route_not_found');
  });
  app.addHook('onRequest', (request, _reply, done) => {
    const isHostMissing = request.raw.httpVersion === '1.1' && request.headers.host === undefined;
    if (isHostMissing) done(hostMissing());
    else done(request.is404 ? noSuchRoute(app, request) : undefined);
  });
}

/** Required by HTTP/1.1; whoever leaves it out may disagree about more, so the connection ends (RFC 9112 §3.2). */
function hostMissing(): ApiError {
  const message = 'The Host header is missing.';
  return new ApiError('invalid_request', { message, headers: { connection: 'close' } });
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

function noSuchRoute(app: FastifyInstance, request: FastifyRequest): ApiError {
  const [path = '/'] = request.url.split('?', 1);
  const allowed = METHODS.filter((method) => isRoute(app, method, path));
  if (allowed.length === 0) return new ApiError('route_not_found');
  return new ApiError('method_not_allowed', { headers: { allow: allowed.join(', ') } });
}

function isRoute(app: FastifyInstance, method: string, url: string): boolean {
  try {
    return app.findRoute({ method, url }) !== null;
  } catch {
    return false;
  }
}
