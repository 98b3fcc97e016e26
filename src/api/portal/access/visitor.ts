import type { FastifyRequest } from 'fastify';
import type { Visitor } from '../../../users/sign-in.ts';

/** Where a request comes from. */
export function visitorOf(request: FastifyRequest): Visitor {
  return { ip: request.ip, userAgent: request.headers['user-agent'] ?? null, requestId: request.id };
}
