import type { FastifyInstance } from 'fastify';
import type { Readiness } from './readiness.ts';

/** GET /healthz: the process answers. GET /readyz: what it needs answers too; 503 while not, and while stopping. */
export async function healthRoutes(
  scope: FastifyInstance,
  { readiness }: { readiness: () => Promise<Readiness> },
): Promise<void> {
  scope.get('/healthz', async () => ({ status: 'ok' }));
  scope.get('/readyz', async (_request, reply) => {
    const state = await readiness();
    return reply.code(state.status === 'ready' ? 200 : 503).send(state);
  });
}
