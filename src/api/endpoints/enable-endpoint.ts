import { Type } from 'typebox';
import { enableEndpoint } from '../../endpoints/endpoint-modes.ts';
import { endpointStatus } from '../../endpoints/endpoints.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { accountObjectId } from '../external/object-id.ts';
import { NoQuery } from '../external/schema-kit.ts';
import { accountOf, apiActorOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { endpointJson } from './endpoint-json.ts';
import { EndpointWithWaiting, IdParams } from './endpoint-schemas.ts';

const Enabling = Type.Object(
  { waiting: Type.Optional(Type.Enum(['send', 'drop'])) },
  { additionalProperties: false },
);

/** POST /api/external/webhook-endpoints/:id/enable: `waiting` says what becomes of what waits, and must when any does. */
export function enableWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'enableWebhookEndpoint',
      summary: 'Enable a webhook endpoint',
      description: 'Lets what waits go, or drops it: say which when any does.',
      tag: 'Webhook endpoints',
      errors: ['waiting_choice_required'],
      requests: {
        'nothing waits': {},
        'send what waits': { waiting: 'send' },
        'drop it': { waiting: 'drop' },
      },
      answers: { 200: { description: 'The endpoint as it is now.' } },
    }),
    params: IdParams,
    querystring: NoQuery,
    body: Enabling,
    response: { 200: Type.Object({ ...EndpointWithWaiting.properties, dropped: Type.Integer() }) },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/webhook-endpoints/:id/enable', options, async (request) => {
    const { wabaId, keyId } = accountOf(request);
    const id = accountObjectId(request.params.id);
    const { waiting = null } = request.body;
    const { dropped } = await enableEndpoint({ ...accounts, actor: apiActorOf(request) }, wabaId, {
      id,
      waiting,
      by: `API key ${keyId}`,
    });
    return { ...endpointJson(await endpointStatus(accounts, wabaId, id)), dropped };
  });
}
