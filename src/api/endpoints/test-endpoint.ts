import { Type } from 'typebox';
import { sendTestEvent } from '../../endpoints/test-event.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { accountObjectId } from '../external/object-id.ts';
import { NoBody, NoQuery, nullable, text } from '../external/schema-kit.ts';
import { accountOf, apiActorOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { IdParams } from './endpoint-schemas.ts';

/** Leaves time for the start of the workflow within the time that a request may take. */
const WAIT_MS = 8_000;

const TestOutcome = Type.Object(
  {
    endpointId: text('3'),
    id: text('evt_019aa2b37c4d7e8f9a0b1c2d3e4f5061'),
    eventId: text('test_1'),
    deliveryId: text('dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062'),
    state: Type.Enum(['pending', 'delivered', 'failed', 'dropped']),
    statusCode: nullable(Type.Integer()),
    error: nullable(Type.String()),
    durationMs: nullable(Type.Number()),
  },
  { title: 'TestOutcome' },
);

/**
 * POST /api/external/webhook-endpoints/:id/test: sends the `test` event to this endpoint and tells what came of it;
 * 202 while nothing has, also when it could not be started yet.
 */
export function testWebhookEndpoint(app: ExternalApp, { accounts, startDelivery }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'testWebhookEndpoint',
      summary: 'Send a test event',
      description:
        'To this endpoint only, also while it is paused, once. Waits up to 8 seconds for what comes of it.',
      tag: 'Webhook endpoints',
      requests: { empty: {} },
      answers: {
        200: {
          description: 'What came of it.',
          example: { state: 'delivered', statusCode: 200, durationMs: 82.4 },
        },
        202: { description: 'Nothing yet: look at `GET /api/external/events/{id}`.' },
      },
    }),
    params: IdParams,
    querystring: NoQuery,
    body: NoBody,
    response: { 200: TestOutcome, 202: TestOutcome },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/webhook-endpoints/:id/test', options, async (request, reply) => {
    const { wabaId } = accountOf(request);
    const actor = apiActorOf(request);
    const tools = { database: accounts.database, actor, startDelivery, waitMs: WAIT_MS };
    const result = await sendTestEvent(tools, wabaId, accountObjectId(request.params.id));
    const { webhookId, startError, workflowId, ...outcome } = result;
    if (startError !== null) {
      request.log.warn({ err: startError, workflowId }, 'the workflow of a test event could not be started');
    }
    reply.code(outcome.state === 'pending' ? 202 : 200);
    return { id: webhookId, ...outcome };
  });
}
