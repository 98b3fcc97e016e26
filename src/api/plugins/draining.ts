import type { FastifyInstance } from 'fastify';
import { ApiError } from '../errors/api-error.ts';

const RETRY_AFTER_SECONDS = '1';

/**
 * While a process is about to stop it still serves whatever comes, because load balancers need a moment to notice.
 * Its answers ask clients to end their connections, so that the next request finds another process.
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
