import type { FastifyInstance } from 'fastify';
import { type FaultRequest, faultProblem, faultRequestSchema } from '../fault-register.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { ControlError } from './control-error.ts';

/** What goes wrong (/sandbox/faults), what was asked (requests), and what was taken (sent, receipts). */
export function registerFaultRoutes(app: FastifyInstance, context: UpstreamContext): void {
  app.post<{ Body: FaultRequest }>(
    '/sandbox/faults',
    { schema: { body: faultRequestSchema } },
    async (request) => {
      const problem = faultProblem(request.body);
      if (problem !== undefined) {
        throw new ControlError(400, 'impossible_fault', problem);
      }
      return context.faults.add(request.body);
    },
  );
  app.get('/sandbox/faults', async () => ({ data: context.faults.list() }));
  app.delete('/sandbox/faults', async () => ({ cleared: context.faults.clear() }));
  app.get('/sandbox/requests', async () => ({ data: context.requests.list() }));
  app.delete('/sandbox/requests', async () => ({ cleared: context.requests.clear() }));
  app.get('/sandbox/sent', async () => ({ data: context.sent.list() }));
  app.delete('/sandbox/sent', async () => ({ cleared: context.sent.clear() }));
  app.get('/sandbox/receipts', async () => ({ data: context.receipts.list() }));
  app.delete('/sandbox/receipts', async () => ({ cleared: context.receipts.clear() }));
}
