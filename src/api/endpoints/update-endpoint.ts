import { endpointStatus, updateEndpoint } from '../../endpoints/endpoints.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { accountObjectId } from '../external/object-id.ts';
import { NoQuery } from '../external/schema-kit.ts';
import { accountOf, apiActorOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { endpointJson } from './endpoint-json.ts';
import { ChangedEndpoint, EndpointChange, IdParams } from './endpoint-schemas.ts';

/** PATCH /api/external/webhook-endpoints/:id: changes the members that are given; null goes back to the default. */
export function updateWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'updateWebhookEndpoint',
      summary: 'Change a webhook endpoint',
      description:
        'Changes the members that are given; null goes back to the default. When scheme, host or port of `url` change, ' +
        '`customHeaders` that are not given in the same request are forgotten, because their values were meant for the ' +
        'server before: `droppedHeaderNames` names them. `secretRotationAdvised` is then true: the server before still ' +
        'knows the signing secret.',
      tag: 'Webhook endpoints',
      errors: ['invalid_url', 'unknown_phone_number', 'url_is_webhook_endpoint'],
      requests: { url: { url: 'https://shop.example/hook' }, 'all events': { eventTypes: null } },
      answers: { 200: { description: 'The endpoint as it is now.' } },
    }),
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
