import { Type } from 'typebox';
import { deleteEndpoint } from '../../endpoints/endpoint-removal.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { accountObjectId } from '../external/object-id.ts';
import { count, NoQuery, text } from '../external/schema-kit.ts';
import { accountOf, apiActorOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { IdParams } from './endpoint-schemas.ts';

/** DELETE /api/external/webhook-endpoints/:id: what waits is dropped and stays in the log. */
export function deleteWebhookEndpoint(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'deleteWebhookEndpoint',
      summary: 'Delete a webhook endpoint',
      description: 'What waits for it is dropped; the log stays.',
      tag: 'Webhook endpoints',
      answers: { 200: { description: 'How many were dropped.' } },
    }),
    params: IdParams,
    querystring: NoQuery,
    response: {
      200: Type.Object({ id: text('3'), deleted: Type.Literal(true), dropped: count(2) }),
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
