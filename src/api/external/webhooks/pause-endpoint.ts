import { Type } from 'typebox';
import { holdEndpoint } from '../../../accounts/endpoint-modes.ts';
import { endpointStatus } from '../../../accounts/endpoints.ts';
import { accountOf, apiActorOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { NoQuery } from '../no-query.ts';
import { accountObjectId } from '../object-id.ts';
import { endpointDocs } from './endpoint-docs.ts';
import { endpointJson } from './endpoint-json.ts';
import { EndpointWithWaiting, IdParams } from './endpoint-schemas.ts';

/** POST /api/external/webhook-endpoints/:id/pause: events wait until the endpoint is enabled. */
export function pauseWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...endpointDocs.pause,
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
