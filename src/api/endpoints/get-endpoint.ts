import { endpointStatus } from '../../endpoints/endpoints.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { accountObjectId } from '../external/object-id.ts';
import { NoQuery } from '../external/schema-kit.ts';
import { accountOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { endpointJson } from './endpoint-json.ts';
import { EndpointWithWaiting, IdParams } from './endpoint-schemas.ts';

/** GET /api/external/webhook-endpoints/:id */
export function getWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'getWebhookEndpoint',
      summary: 'Get a webhook endpoint',
      description: 'With what waits for it.',
      tag: 'Webhook endpoints',
      answers: { 200: { description: 'The endpoint.' } },
    }),
    params: IdParams,
    querystring: NoQuery,
    response: { 200: EndpointWithWaiting },
  };
  const options = { schema, config: SCOPES.readWebhooks };
  app.get('/api/external/webhook-endpoints/:id', options, async (request) => {
    const { wabaId } = accountOf(request);
    return endpointJson(await endpointStatus(accounts, wabaId, accountObjectId(request.params.id)));
  });
}
