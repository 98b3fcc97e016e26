import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { ApiMetrics, NoteRequest } from '../../platform/metrics/metrics.ts';

/**
 * Counts every request once it is answered. Each route that comes after this notes under a name of its own, made with
 * the route, so that nothing is looked up per request; what is no route is one name for all.
 */
export function addRequestMetrics(app: FastifyInstance, metrics: ApiMetrics): void {
  const noteUnknown = metrics.operation('unknown');
  app.addHook('onRoute', (route) => {
    route.onResponse = [hookOf(noteOf(metrics, route)), ...[route.onResponse ?? []].flat()];
  });
  app.addHook('onResponse', (request, reply, done) => {
    if (request.is404) noteUnknown(reply.statusCode, reply.elapsedTime / 1_000);
    done();
  });
}

function hookOf(note: NoteRequest) {
  return (_request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    note(reply.statusCode, reply.elapsedTime / 1_000);
    done();
  };
}

function noteOf(metrics: ApiMetrics, { url, method, schema }: RouteOptions): NoteRequest {
  if (url === '/upstream/webhook' && method === 'POST') return metrics.upstreamRequest;
  const operationId = schema !== undefined && 'operationId' in schema ? schema.operationId : undefined;
  if (typeof operationId === 'string') return metrics.operation(operationId);
  if (/^\/portal(\/|$)/.test(url)) return metrics.operation('portal');
  return metrics.operation(url.startsWith('/received_media/') ? 'receivedMedia' : 'other');
}
