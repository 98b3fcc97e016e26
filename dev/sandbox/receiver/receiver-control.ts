import type { FastifyInstance } from 'fastify';
import { rejectForeignPages } from '../loopback-only.ts';
import { type Behaviour, behaviourSchema } from './behaviour.ts';
import { printableText, readEnvelope } from './event-line.ts';
import { eventContent } from './event-summary.ts';
import type { ReceivedWebhook } from './received-webhooks.ts';
import type { ReceiverContext } from './webhook-routes.ts';

const secretsSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['secrets'],
  properties: { secrets: { type: 'array', items: { type: 'string', minLength: 1 } } },
} as const;

const sinceSchema = {
  type: 'object',
  properties: { since: { type: 'string', pattern: '^\\d{1,15}$' } },
} as const;

const newestSchema = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { type: 'string', maxLength: 200 },
    limit: { type: 'string', pattern: '^[1-9]\\d{0,2}$' },
  },
} as const;

type NewestRoute = { Querystring: { name: string; limit?: string } };

const DEFAULT_NEWEST = 50;

/** /received/newest and /received/:n: what the console shows. */
function registerConsoleRoutes(app: FastifyInstance, { received }: ReceiverContext): void {
  app.get<NewestRoute>('/received/newest', { schema: { querystring: newestSchema } }, async (request) => {
    const { name, limit = DEFAULT_NEWEST } = request.query;
    const newest = received.newest(name, Number(limit));
    return {
      data: newest.map(shownWebhook),
      counts: received.counts(name),
    };
  });
  app.get<{ Params: { n: string } }>('/received/:n', async (request, reply) => {
    const webhook = received.find(Number(request.params.n));
    return (
      webhook ?? reply.code(404).send({ error: { code: 'unknown_webhook', message: 'No such webhook.' } })
    );
  });
}

/** /received and /control: how tests look into the sample tenant and steer it. */
export async function receiverControl(app: FastifyInstance, context: ReceiverContext): Promise<void> {
  rejectForeignPages(app);
  app.get<{ Querystring: { since?: string } }>(
    '/received',
    { schema: { querystring: sinceSchema } },
    async (request) => ({
      data: context.received.since(Number(request.query.since ?? 0)),
      last: context.received.lastNumber(),
    }),
  );
  registerConsoleRoutes(app, context);
  app.delete('/received', async () => ({ cleared: context.received.clear() }));
  app.post<{ Body: Behaviour }>(
    '/control/behaviour',
    { schema: { body: behaviourSchema } },
    async (request) => {
      context.behaviours.set(request.body);
      return { behaviours: context.behaviours.list() };
    },
  );
  app.get('/control/behaviour', async () => ({ behaviours: context.behaviours.list() }));
  app.post<{ Body: { secrets: string[] } }>(
    '/control/secrets',
    { schema: { body: secretsSchema } },
    async (request) => {
      context.secrets.add(request.body.secrets);
      return { added: request.body.secrets.length };
    },
  );
}

/** What a list shows of a webhook: what is in it in a few words, not its body. */
type ShownWebhook = Omit<ReceivedWebhook, 'body' | 'bodyBase64'> & {
  eventType: string;
  eventId: string;
  summary: string;
  /** Of `status` and `payment` events: the state that they report. */
  state: string | null;
};

/** Shortens a webhook for a list. */
function shownWebhook({ body, bodyBase64: _bytes, ...webhook }: ReceivedWebhook): ShownWebhook {
  const { eventType, eventId, data } = readEnvelope(body);
  const summary = printableText(eventContent(eventType, data), 200);
  return { ...webhook, eventType: printableText(eventType, 40), eventId, summary, state: stateOf(data) };
}

function stateOf(data: unknown): string | null {
  const { status } = (data ?? {}) as { status?: unknown };
  const state = typeof status === 'object' ? (status as { status?: unknown } | null)?.status : status;
  return typeof state === 'string' ? state : null;
}
