import { Type } from 'typebox';
import { holdEndpoint } from '../../endpoints/endpoint-modes.ts';
import { endpointStatus } from '../../endpoints/endpoints.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { accountObjectId } from '../external/object-id.ts';
import { NoQuery } from '../external/schema-kit.ts';
import { accountOf, apiActorOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { endpointJson } from './endpoint-json.ts';
import { EndpointWithWaiting, IdParams } from './endpoint-schemas.ts';

/** POST /api/external/webhook-endpoints/:id/pause: events wait until the endpoint is enabled. */
export function pauseWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'pauseWebhookEndpoint',
      summary: 'Pause a webhook endpoint',
      description: 'Events wait until it is enabled.',
      tag: 'Webhook endpoints',
      requests: { 'without a reason': {}, 'with a reason': { reason: 'release' } },
      answers: {
        200: {
          description: 'The endpoint as it is now.',
          example: { mode: 'paused', modeReason: 'release' },
        },
      },
    }),
    params: IdParams,
    querystring: NoQuery,
    body: Type.Object({ reason: Type.Optional(Type.String()) }, { additionalProperties: false }),
    response: { 200: EndpointWithWaiting },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/webhook-endpoints/:id/pause', options, async (request) => {
    const { wabaId } = accountOf(request);
    const id = accountObjectId(request.params.id);
    const { reason = '' } = request.body;
    await holdEndpoint({ ...accounts, actor: apiActorOf(request) }, wabaId, { id, mode: 'paused', reason });
    return endpointJson(await endpointStatus(accounts, wabaId, id));
  });
}
