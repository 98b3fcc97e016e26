import { Type } from 'typebox';
import { sendTestEvent } from '../../../accounts/test-event.ts';
import { accountOf, apiActorOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { NoQuery } from '../no-query.ts';
import { nullable } from '../nullable.ts';
import { accountObjectId } from '../object-id.ts';
import { endpointDocs } from './endpoint-docs.ts';
import { IdParams } from './endpoint-schemas.ts';

/** Leaves time for the start of the workflow within the time that a request may take. */
const WAIT_MS = 8_000;

const TestOutcome = Type.Object(
  {
    endpointId: Type.String(),
    id: Type.String(),
    eventId: Type.String(),
    deliveryId: Type.String(),
    state: Type.Enum(['pending', 'delivered', 'failed', 'dropped']),
    statusCode: nullable(Type.Integer()),
    error: nullable(Type.String()),
    durationMs: nullable(Type.Number()),
  },
  { title: 'TestOutcome' },
);

const NoBody = Type.Object({}, { additionalProperties: false });

/**
 * POST /api/external/webhook-endpoints/:id/test: sends the `test` event to this endpoint and tells what came of it;
 * 202 while nothing has, also when it could not be started yet.
 */
export function testWebhookEndpoint(app: ExternalApp, { accounts, startDelivery }: ExternalContext): void {
  const schema = {
    ...endpointDocs.test,
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
