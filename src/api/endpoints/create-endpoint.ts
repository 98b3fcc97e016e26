import { addEndpoint } from '../../endpoints/endpoints.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { NoQuery } from '../external/schema-kit.ts';
import { accountOf, apiActorOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { endpointJson } from './endpoint-json.ts';
import { CreatedEndpoint, NewEndpoint } from './endpoint-schemas.ts';

/** POST /api/external/webhook-endpoints: adds an endpoint; its secret is in this answer only. */
export function createWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'createWebhookEndpoint',
      summary: 'Add a webhook endpoint',
      description: 'Up to 100 in a WABA. `secret` is in this answer only.',
      tag: 'Webhook endpoints',
      errors: ['invalid_url', 'unknown_phone_number', 'url_is_webhook_endpoint', 'too_many_endpoints'],
      requests: {
        'everything by default': { url: 'https://shop.example/hook' },
        'some events, own header': {
          url: 'https://shop.example/hook',
          description: 'shop server',
          eventTypes: ['message', 'status'],
          customHeaders: { 'X-Token': 'a value of yours' },
        },
      },
      answers: {
        201: {
          description: 'The endpoint; events that come from now on are sent to it.',
          headers: ['Location'],
        },
      },
    }),
    querystring: NoQuery,
    body: NewEndpoint,
    response: { 201: CreatedEndpoint },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/webhook-endpoints', options, async (request, reply) => {
    const created = await addEndpoint(
      { ...accounts, actor: apiActorOf(request) },
      accountOf(request).wabaId,
      request.body,
    );
    reply.code(201).header('location', `/api/external/webhook-endpoints/${created.id}`);
    return endpointJson(created);
  });
}
