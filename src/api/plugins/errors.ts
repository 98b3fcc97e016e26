import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { RecipientOptedOut } from '../../features/messages/send/opted-out.ts';
import { ObjectStoreUnavailable } from '../../platform/object-store/store-errors.ts';
import { isTransientError } from '../../platform/postgres/error-class.ts';
import { RateLimitError, RequestError } from '../../platform/request-input.ts';
import { ApiError, errorBody, notFound, unavailable } from '../errors/api-error.ts';
import { ERROR_CODES, type ErrorCode } from '../errors/error-codes.ts';
import { namingTheObject } from '../errors/missing-objects.ts';
import { setBaseHeaders } from './request-hooks.ts';

export type SendError = (thrown: unknown, request: FastifyRequest, reply: FastifyReply) => void;

export function makeErrorSender(publicUrl: string): SendError {
  return (thrown, request, reply) => {
    const error = namingTheObject(classifyError(thrown), request);
    logError(error, request);
    setBaseHeaders(request, reply);
    reply
      .code(error.status)
      .headers(error.headers)
      .type('application/json; charset=utf-8')
      .send(JSON.stringify(errorBody(error, { publicUrl, requestId: request.id }, error.extras)));
  };
}

/** Error = a defect that someone must fix. What is away for a while is a warning; readiness tells about it. */
export function logError(error: ApiError, request: FastifyRequest): void {
  if (error.status < 500) return;
  const line = { err: error.cause ?? error, method: request.method, route: request.routeOptions.url };
  const isElsewhere = error.code === 'service_unavailable' || error.code === 'upstream_unavailable';
  if (isElsewhere) request.log.warn(line, 'request could not be answered');
  else request.log.error(line, 'request failed');
}

/** One handler for every error; what is no request for any route is refused before a body is read. */
export function addErrorHandling(app: FastifyInstance, sendError: SendError): void {
  app.setErrorHandler(sendError);
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

/** Required by HTTP/1.1; a client without it may differ in more, so the connection ends (RFC 9112 §3.2). */
function hostMissing(): ApiError {
  const message = 'The Host header is missing.';
  return new ApiError('invalid_request', { message, headers: { connection: 'close' } });
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

function noSuchRoute(app: FastifyInstance, request: FastifyRequest): ApiError {
  const [path = '/'] = request.url.split('?', 1);
  const routes = METHODS.map((method) => ({ method, params: paramsOf(app, method, path) }));
  // A separate path is no id of the route beside it.
  const isOwn = routes.some(({ params }) => params === 0);
  const allowed = routes.flatMap(({ method, params }) =>
    params === null || (isOwn && params > 0) ? [] : [method],
  );
  if (allowed.length === 0) return new ApiError('route_not_found');
  const allow = allowed.join(', ');
  const message = `This path supports ${allow}, not ${request.method}.`;
  return new ApiError('method_not_allowed', { message, headers: { allow } });
}

/** How many parts of the path are parameters of its route; null: there is none. */
function paramsOf(app: FastifyInstance, method: string, url: string): number | null {
  try {
    const route = app.findRoute({ method, url });
    return route === null ? null : Object.keys(route.params).length;
  } catch {
    return null;
  }
}

const FRAMEWORK_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
  FST_ERR_NOT_FOUND: 'route_not_found',
  FST_ERR_CTP_INVALID_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_json',
};

/** An unknown error is a 500 whose cause is only logged. */
export function classifyError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof RequestError) return refusalAsApiError(error);
  const { code, statusCode } = frameworkPartsOf(error);
  const known = code === null ? undefined : FRAMEWORK_CODES[code];
  if (known !== undefined) return new ApiError(known, { cause: error });
  if (
    code === 'FST_ERR_HANDLER_TIMEOUT' ||
    error instanceof ObjectStoreUnavailable ||
    isTransientError(error)
  ) {
    return unavailable(error);
  }
  if (statusCode !== null && statusCode >= 400 && statusCode < 500) {
    return new ApiError('invalid_request', { cause: error });
  }
  return new ApiError('internal_error', { cause: error });
}

function frameworkPartsOf(error: unknown): { code: string | null; statusCode: number | null } {
  if (!(error instanceof Error)) return { code: null, statusCode: null };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  const statusCode = 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : null;
  return { code, statusCode };
}

const RENAMED: Readonly<Record<string, ErrorCode>> = {
  invalid_value: 'invalid_parameter',
  url_too_long: 'invalid_url',
  https_required: 'invalid_url',
  credentials_in_url: 'invalid_url',
  fragment_in_url: 'invalid_url',
  port_not_allowed: 'invalid_url',
  address_not_allowed: 'invalid_url',
};

/** Objects that a path can name; one that a body names has a `param`. */
const NAMED_BY_PATH = new Set([
  'unknown_endpoint',
  'unknown_delivery',
  'unknown_replay',
  'unknown_broadcast',
  'unknown_erasure',
]);

/** A code that no tenant can cause is our fault: 500. The 404 has the common text, which does not tell what exists. */
function refusalAsApiError(error: RequestError): ApiError {
  const { code, message, param } = error;
  if (param === null && NAMED_BY_PATH.has(code)) return notFound();
  const apiCode = RENAMED[code] ?? code;
  if (!isErrorCode(apiCode)) return new ApiError('internal_error', { cause: error });
  const member = param ?? (apiCode === 'invalid_url' ? 'url' : null);
  const headers = refusalHeaders(error);
  const extras = error instanceof RecipientOptedOut ? { optOut: error.mark } : {};
  return new ApiError(apiCode, {
    message,
    cause: error,
    headers,
    extras,
    ...(member !== null && { param: member }),
  });
}

/** The headers of the response to a refused request, in the API and in the portal. */
export function refusalHeaders(error: RequestError): Record<string, string> {
  return error instanceof RateLimitError ? { 'retry-after': String(error.retryAfterSeconds) } : {};
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}
