import type { FastifyInstance } from 'fastify';

/**
 * Notices a proxy whose X-Forwarded-For does not count: warns once, with its address, and says so from then on.
 * Returns what readiness shows of it; null while none has come.
 */
export function noticeUntrustedProxy(app: FastifyInstance): () => string | null {
  let warning: string | null = null;
  app.addHook('onRequest', (request, _reply, done) => {
    const forwarded = request.headers['x-forwarded-for'];
    const peer = request.raw.socket.remoteAddress;
    if (warning === null && forwarded !== undefined && request.ip === peer && !forwarded.includes(peer)) {
      warning = 'X-Forwarded-For came from an address that HELIOGRAPH_TRUST_PROXY does not name';
      request.log.warn(
        { peer },
        `${warning}: if that is your reverse proxy, all clients count as one; if not, somebody made it up`,
      );
    }
    done();
  });
  return () => warning;
}
