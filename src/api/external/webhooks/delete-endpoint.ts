import { Type } from 'typebox';
import { deleteEndpoint } from '../../../accounts/endpoint-removal.ts';
import { accountOf, apiActorOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { NoQuery } from '../no-query.ts';
import { accountObjectId } from '../object-id.ts';
import { endpointDocs } from './endpoint-docs.ts';
import { IdParams } from './endpoint-schemas.ts';

/** DELETE /api/external/webhook-endpoints/:id: what waits is dropped and stays in the log. */
export function deleteWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...endpointDocs.delete,
    params: IdParams,
    querystring: NoQuery,
    response: {
      200: Type.Object({ id: Type.String(), deleted: Type.Literal(true), dropped: Type.Integer() }),
    },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.delete('/api/external/webhook-endpoints/:id', options, async (request) => {
    const { wabaId } = accountOf(request);
    const { id, dropped } = await deleteEndpoint(
      { ...accounts, actor: apiActorOf(request) },
      wabaId,
      accountObjectId(request.params.id),
    );
    return { id, deleted: true as const, dropped };
  });
}
