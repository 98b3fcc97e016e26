import type { FastifyInstance } from 'fastify';
import { isLoopbackHost } from './development-only.ts';

function isForeignOrigin(origin: string): boolean {
  return !URL.canParse(origin) || !isLoopbackHost(new URL(origin).hostname);
}

/**
 * Answers 403 to requests that a web page of another site makes through the developer's browser
 * (DNS rebinding and cross-site posts): a loopback socket alone does not keep those out.
 */
export function rejectForeignPages(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers;
    if (!isLoopbackHost(request.hostname) || (origin !== undefined && isForeignOrigin(origin))) {
      return reply.code(403).send({
        error: { code: 'loopback_only', message: 'This API serves programs on this machine only.' },
      });
    }
  });
}
