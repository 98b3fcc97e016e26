import { endpointStatus, updateEndpoint } from '../../../accounts/endpoints.ts';
import { accountOf, apiActorOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { NoQuery } from '../no-query.ts';
import { accountObjectId } from '../object-id.ts';
import { endpointDocs } from './endpoint-docs.ts';
import { endpointJson } from './endpoint-json.ts';
import { ChangedEndpoint, EndpointChange, IdParams } from './endpoint-schemas.ts';

/** PATCH /api/external/webhook-endpoints/:id: changes the members that are given; null goes back to the default. */
export function updateWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...endpointDocs.update,
    params: IdParams,
    querystring: NoQuery,
    body: EndpointChange,
    response: { 200: ChangedEndpoint },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.patch('/api/external/webhook-endpoints/:id', options, async (request) => {
    const { wabaId } = accountOf(request);
    const { id, droppedHeaderNames, secretRotationAdvised } = await updateEndpoint(
      { ...accounts, actor: apiActorOf(request) },
      wabaId,
      accountObjectId(request.params.id),
      request.body,
    );
    const changed = endpointJson(await endpointStatus(accounts, wabaId, id));
    return { ...changed, droppedHeaderNames, secretRotationAdvised };
  });
}
