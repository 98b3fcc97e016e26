import type { FastifyInstance } from 'fastify';
import { DEMO_CUSTOMERS, type DemoCustomer } from '../demo-customers.ts';
import type { UpstreamContext } from '../upstream-context.ts';

const MAX_ENTRIES = 500;
const MAX_CUSTOMERS = 20;

const querySchema = {
  type: 'object',
  required: ['wabaId'],
  properties: {
    wabaId: { type: 'string', maxLength: 32 },
    limit: { type: 'string', pattern: '^[1-9]\\d{0,2}$' },
  },
} as const;

type ChatRoute = { Querystring: { wabaId: string; limit?: string } };

function phoneNumberIdsOf(context: UpstreamContext, wabaId: string): Set<string> {
  return new Set(context.phones.ofWaba(wabaId).map((phone) => phone.phoneNumberId));
}

/** The demo customers, and after them others who have a chat. */
function customersOf(context: UpstreamContext, wabaId: string): DemoCustomer[] {
  const byId = new Map(DEMO_CUSTOMERS.map((customer) => [customer.waId, customer]));
  for (const entry of context.chat.newest(phoneNumberIdsOf(context, wabaId), MAX_ENTRIES)) {
    if (!byId.has(entry.customer) && /^\d{1,32}$/.test(entry.customer) && byId.size < MAX_CUSTOMERS) {
      byId.set(entry.customer, { waId: entry.customer, name: entry.customerName ?? entry.customer });
    }
  }
  return [...byId.values()];
}

/** /sandbox/chat: the newest messages of an account's chats, both sides; /sandbox/customers: who can be played. */
export function registerChatRoutes(app: FastifyInstance, context: UpstreamContext): void {
  app.get<ChatRoute>('/sandbox/chat', { schema: { querystring: querySchema } }, async (request) => {
    const limit = Math.min(Number(request.query.limit ?? MAX_ENTRIES), MAX_ENTRIES);
    return { data: context.chat.newest(phoneNumberIdsOf(context, request.query.wabaId), limit) };
  });
  app.get<ChatRoute>('/sandbox/customers', { schema: { querystring: querySchema } }, async (request) => ({
    data: customersOf(context, request.query.wabaId),
  }));
}
