import { type FastifyReply, type FastifyRequest, LogController } from 'fastify';

/**
 * One line per request at debug, and nothing of it that is secret: no headers, and no query string, in which the
 * upstream handshake carries its token. Errors are logged where they are answered.
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
      path: request.url.split('?', 1)[0],
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
