import { addEndpoint } from '../../../accounts/endpoints.ts';
import { accountOf, apiActorOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { NoQuery } from '../no-query.ts';
import { endpointDocs } from './endpoint-docs.ts';
import { endpointJson } from './endpoint-json.ts';
import { CreatedEndpoint, NewEndpoint } from './endpoint-schemas.ts';

/** POST /api/external/webhook-endpoints: adds an endpoint; its secret is in this answer only. */
export function createWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...endpointDocs.create,
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
