import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type FastifyReply, type FastifyRequest, type FastifyServerOptions, LogController } from 'fastify';
import type { Logger } from 'pino';
import type { Config } from '../platform/config/config.ts';
import { ApiError, errorBody } from './errors/api-error.ts';
import type { ErrorCode } from './errors/error-codes.ts';
import { sendFacadeError } from './graph/facade-error.ts';
import { BODY_LIMIT_BYTES } from './plugins/body-parsers.ts';
import { makeErrorSender, type SendError } from './plugins/errors.ts';
import { sendErrorPage } from './portal/access/page-error.ts';

/** TLS certificate chain and key, PEM. */
export type TlsFiles = { cert: Buffer; key: Buffer };

/** No client, however slow, holds a connection for longer than it is of use. */
const TIMEOUTS = {
  connectionTimeout: 120_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 72_000,
};
const NODE_SERVER_OPTIONS = {
  // Refused by a hook of ours, whose answer has the shape of every other.
  requireHostHeader: false,
  headersTimeout: 15_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16_384,
};

/** As for headers: until then no request has come. */
const TLS_OPTIONS = { handshakeTimeout: NODE_SERVER_OPTIONS.headersTimeout };

export function serverOptions(config: Config, logger: Logger, tls?: TlsFiles): FastifyServerOptions {
  const { publicUrl, trustProxy } = config.api;
  return {
    ...TIMEOUTS,
    ...(tls === undefined
      ? { http: NODE_SERVER_OPTIONS }
      : { https: { ...NODE_SERVER_OPTIONS, ...TLS_OPTIONS, ...tls } }),
    loggerInstance: logger,
    logController: new RequestLog(config),
    // An id from outside could be anything, or that of another request.
    requestIdHeader: false,
    genReqId: newRequestId,
    trustProxy: trustProxy.length === 0 ? false : [...trustProxy],
    bodyLimit: BODY_LIMIT_BYTES,
    return503OnClosing: false,
    // Longer than any URL that maxHeaderSize lets in: a long id is an unknown one, not a separate error.
    routerOptions: { maxParamLength: 2 * NODE_SERVER_OPTIONS.maxHeaderSize },
    rewriteUrl: ({ url = '/' }) => withoutEndSlash(url),
    frameworkErrors: refuseUrl(publicUrl),
    clientErrorHandler: (error, socket) => answerBrokenRequest(error, socket, publicUrl),
  };
}

/** Clients of upstream's API write paths with a slash at the end too, and upstream does not mind. */
function withoutEndSlash(url: string): string {
  if (!url.startsWith('/graph/')) return url;
  const end = url.indexOf('?');
  const path = end === -1 ? url : url.slice(0, end);
  return path.endsWith('/') ? `${path.slice(0, -1)}${url.slice(path.length)}` : url;
}

/** For what no route takes: below `/graph` errors are in upstream's form there too. */
export function errorSender(publicUrl: string): SendError {
  const sendError = makeErrorSender(publicUrl);
  return (error, request, reply) => {
    const isFacade = /^\/graph(?:[/?]|$)/.test(request.url);
    (isFacade ? sendFacadeError : sendError)(error, request, reply);
  };
}

/** For URLs that no route can have, such as one with a broken percent-encoding. */
function refuseUrl(publicUrl: string): SendError {
  const sendError = errorSender(publicUrl);
  return (error, request, reply) => {
    if (request.url.startsWith('/portal/')) sendErrorPage(error, request, reply);
    else sendError(error, request, reply);
  };
}

function newRequestId(): string {
  return `req_${randomUUID().replaceAll('-', '').slice(0, 24)}`;
}

/** What Node could not even read as HTTP still gets an answer of the usual shape, written by hand. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket, publicUrl: string): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const apiError = new ApiError(codeOf(error));
  const requestId = newRequestId();
  const body = JSON.stringify(errorBody(apiError, { publicUrl, requestId }));
  const head = [
    `HTTP/1.1 ${apiError.status} ${STATUS_CODES[apiError.status]}`,
    `X-Request-Id: ${requestId}`,
    'X-Content-Type-Options: nosniff',
    'Cache-Control: no-store',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

function codeOf(error: { code?: string }): ErrorCode {
  if (error.code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large';
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request_timeout' : 'invalid_request';
}

/**
 * One line per request, and nothing of it that is secret: no headers, no query string, in which the upstream handshake
 * carries its token, and of the path the pattern of its route only. Errors are logged where they are answered.
 */
class RequestLog extends LogController {
  readonly #accessLog: Config['accessLog'];
  readonly #others: 'debug' | null;

  constructor({ accessLog, logLevel }: Pick<Config, 'accessLog' | 'logLevel'>) {
    super({ requestIdLogLabel: 'requestId' });
    this.#accessLog = accessLog;
    this.#others = logLevel === 'debug' ? 'debug' : null;
  }

  override incomingRequest(): void {}

  override requestCompleted(
    error: Error | null | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    const level = isShown(this.#accessLog, request) ? 'info' : this.#others;
    if (error) request.log.warn({ ...accessLine(request, reply), err: error }, 'request was cut');
    else if (level !== null) request.log[level](accessLine(request, reply), 'request');
  }

  override defaultErrorLog(): void {}

  override routeNotFound(): void {}
}

/** Asked every few seconds by machines, by each of them. */
const HEALTH_ROUTES = new Set(['/healthz', '/readyz']);

function isShown(accessLog: Config['accessLog'], { routeOptions }: FastifyRequest): boolean {
  const route = routeOptions.url ?? '';
  if (accessLog === 'off' || HEALTH_ROUTES.has(route)) return false;
  return accessLog === 'all' || route !== '/upstream/webhook';
}

function accessLine(request: FastifyRequest, reply: FastifyReply) {
  const { account, portalSession, method, routeOptions, headers } = request;
  const length = reply.getHeader('content-length');
  return {
    method,
    route: routeOptions.url ?? 'unknown',
    statusCode: reply.statusCode,
    durationMs: Math.round(reply.elapsedTime * 10) / 10,
    wabaId: account?.wabaId,
    keyId: account?.keyId,
    userId: portalSession?.viewer.userId,
    requestBytes: bytesIn(headers['content-length']),
    responseBytes: bytesIn(length),
  };
}

/** Undefined where the length is not known before the end. */
function bytesIn(length: unknown): number | undefined {
  return length === undefined ? undefined : Number(length);
}
