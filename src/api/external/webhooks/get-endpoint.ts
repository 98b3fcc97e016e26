import { endpointStatus } from '../../../accounts/endpoints.ts';
import { accountOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { NoQuery } from '../no-query.ts';
import { accountObjectId } from '../object-id.ts';
import { endpointDocs } from './endpoint-docs.ts';
import { endpointJson } from './endpoint-json.ts';
import { EndpointWithWaiting, IdParams } from './endpoint-schemas.ts';

/** GET /api/external/webhook-endpoints/:id */
export function getWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...endpointDocs.get,
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
