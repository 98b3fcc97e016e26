import { type FastifyReply, type FastifyRequest, LogController } from 'fastify';

/**
 * One line per request at debug, and nothing of it that is secret: no headers, no query string, in which the upstream
 * handshake carries its token, and no path that is a secret itself. Errors are logged where they are answered.
 */
export class RequestLog extends LogController {
  constructor() {
    super({ requestIdLogLabel: 'requestId' });
  }

  override incomingRequest(): void {}

  override requestCompleted(
    error: Error | null | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    const line = {
      method: request.method,
      path: shownPath(request),
      statusCode: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime),
      wabaId: request.account?.wabaId,
    };
    if (error) request.log.warn({ ...line, err: error }, 'request was cut');
    else request.log.debug(line, 'request');
  }

  override defaultErrorLog(): void {}

  override routeNotFound(): void {}
}

/** One-time links and media addresses are for whoever has them: of those the log has the route only. */
function shownPath({ url, routeOptions }: FastifyRequest): string {
  const route = routeOptions.url ?? '';
  return route.includes(':token') ? route : (url.split('?', 1)[0] ?? '');
}
