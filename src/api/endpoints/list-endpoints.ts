import { Type } from 'typebox';
import { endpointsOf } from '../../endpoints/endpoints.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from '../external/page.ts';
import { listOf } from '../external/schema-kit.ts';
import { accountOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';
import { endpointJson } from './endpoint-json.ts';
import { EndpointWithWaiting } from './endpoint-schemas.ts';

/** GET /api/external/webhook-endpoints: the endpoints of a WABA, the oldest first. */
export function listWebhookEndpoints(app: ExternalApp, { accounts, cursors }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'listWebhookEndpoints',
      summary: 'List webhook endpoints',
      description:
        'The oldest first, with what waits for each. Secrets and values of headers are never shown.',
      tag: 'Webhook endpoints',
      answers: { 200: { description: 'A page of endpoints.' } },
    }),
    querystring: Type.Object(PAGE_PARAMETERS, { additionalProperties: false }),
    response: { 200: listOf(EndpointWithWaiting) },
  };
  app.get('/api/external/webhook-endpoints', { schema, config: SCOPES.readWebhooks }, async (request) => {
    const { wabaId } = accountOf(request);
    const { limit, cursor } = request.query;
    const scope = [wabaId, 'webhook-endpoints'];
    const [afterId = '0'] = positionOf(cursors, scope, cursor) ?? [];
    const found = await endpointsOf(accounts, wabaId, { afterId, limit: rowsToRead(limit) });
    const { rows, ...page } = pageOf(found, limit, ({ id }) => cursors.encode(scope, [id]));
    return { data: rows.map(endpointJson), ...page };
  });
}
