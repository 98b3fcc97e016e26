import type { FastifyInstance } from 'fastify';
/** Thrown when a development tool is asked to run where it must not. */
export class SandboxRefusedError extends Error {
  override name = 'SandboxRefusedError';
}

const LOOPBACK_HOSTS = new Set(['127.0.0.1', '::1', 'localhost', '[::1]']);

/**
 * Refuses to go on in production mode: the sandbox accepts any caller as the upstream platform. An environment that
 * names a database is an installation's, and there the mode is production unless it says otherwise.
 * @throws SandboxRefusedError in production mode.
 */
export function requireDevelopment(): void {
  const { env } = process;
  const namesDatabase = env.HELIOGRAPH_DATABASE_URL || env.HELIOGRAPH_DATABASE_URL_FILE;
  const unset = namesDatabase ? 'production' : 'development';
  const mode = env.HELIOGRAPH_MODE?.trim().toLowerCase() || unset;
  if (mode !== 'development') {
    throw new SandboxRefusedError(
      'The sandbox is a development tool and does not run with HELIOGRAPH_MODE=production.',
    );
  }
}

/** True for the names and addresses of this machine only. */
function isLoopbackHost(host: string): boolean {
  return LOOPBACK_HOSTS.has(host.toLowerCase());
}

/**
 * Refuses to listen where other machines could reach the control API, which asks for no password.
 * @throws SandboxRefusedError for any host but loopback.
 */
export function requireLoopback(host: string): void {
  if (!isLoopbackHost(host)) {
    throw new SandboxRefusedError(`The sandbox listens on loopback only, not on ${host}.`);
  }
}

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
