import type { FastifyInstance } from 'fastify';
import { ROUTING_ROLES, type Routing } from '../routing-roles.ts';
import type { UpstreamContext } from '../upstream-context.ts';
import { phoneOf } from './control-error.ts';

type RoutingRequest = { phoneNumberId?: string; roles: Routing['roles']; isStandby?: boolean };

const bodySchema = {
  type: 'object',
  additionalProperties: false,
  required: ['roles'],
  properties: {
    phoneNumberId: { type: 'string' },
    roles: { type: 'array', uniqueItems: true, items: { type: 'string', enum: ROUTING_ROLES } },
    isStandby: { type: 'boolean' },
  },
} as const;

/** POST /sandbox/routing: other responders answer for a number too, and our app has these roles; DELETE: nobody else does. */
export function registerRoutingRoutes(app: FastifyInstance, context: UpstreamContext): void {
  app.post<{ Body: RoutingRequest }>(
    '/sandbox/routing',
    { schema: { body: bodySchema } },
    async ({ body }) => {
      const { phoneNumberId } = phoneOf(context, body);
      const { roles, isStandby = false } = body;
      context.routing.set(phoneNumberId, { roles, isStandby });
      return { phoneNumberId, roles, isStandby };
    },
  );
  app.delete<{ Querystring: { phoneNumberId?: string } }>('/sandbox/routing', async ({ query }) => {
    const { phoneNumberId } = phoneOf(context, query);
    context.routing.set(phoneNumberId, null);
    return { phoneNumberId };
  });
}
