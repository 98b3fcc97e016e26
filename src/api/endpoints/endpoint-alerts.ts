import { Type } from 'typebox';
import { type AlertView, endpointAlertsOf } from '../../endpoints/alerts/operations-url.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from '../external/page.ts';
import { count, dateTime, listOf, nullable, text } from '../external/schema-kit.ts';
import { accountOf } from '../keys/api-key-auth.ts';
import { SCOPES } from '../keys/key-scopes.ts';
import { documented } from '../openapi/documented.ts';

const Alert = Type.Object(
  {
    id: text('alr_019aa2b37c4d7e8f9a0b1c2d3e4f5063'),
    endpointId: text('3'),
    alert: text('endpoint.failing'),
    state: Type.Enum(['waiting', 'delivered', 'given_up'], { examples: ['delivered'] }),
    attempts: count(1),
    lastError: nullable(Type.String()),
    createdAt: dateTime(),
    deliveredAt: nullable(dateTime(), '2026-11-21T09:30:00.210Z'),
    givenUpAt: nullable(dateTime()),
  },
  { title: 'EndpointAlert' },
);

/** GET /api/external/endpoint-alerts: what went wrong with endpoints and who was told, the newest first. */
export function endpointAlerts(app: ExternalApp, { accounts, cursors }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'listEndpointAlerts',
      summary: 'List alerts about endpoints',
      description:
        'The newest first, also those that were sent nowhere. `alert` is `endpoint.failing`, `endpoint.disabled`, ' +
        '`endpoint.recovered` or `endpoint.deliveries_failed`; more can come.',
      tag: 'Endpoint alerts',
      answers: { 200: { description: 'A page of alerts.' } },
    }),
    querystring: Type.Object(PAGE_PARAMETERS, { additionalProperties: false }),
    response: { 200: listOf(Alert) },
  };
  app.get('/api/external/endpoint-alerts', { schema, config: SCOPES.readWebhooks }, async (request) => {
    const { wabaId } = accountOf(request);
    const { limit, cursor } = request.query;
    const scope = [wabaId, 'endpoint-alerts'];
    const [createdAt, uuid] = positionOf(cursors, scope, cursor) ?? [];
    const before = createdAt === undefined || uuid === undefined ? null : { createdAt, uuid };
    const found = await endpointAlertsOf(accounts, wabaId, { before, limit: rowsToRead(limit) });
    const { rows, ...page } = pageOf(found, limit, (row) => cursors.encode(scope, positionIn(row)));
    return { data: rows.map(alertJson), ...page };
  });
}

/** PostgreSQL reads a UUID without dashes too. */
function positionIn({ createdAt, alertId }: AlertView): [string, string] {
  return [createdAt.toISOString(), alertId.slice('alr_'.length)];
}

function alertJson({ alertId, wabaId, isEndpointDeleted, ...alert }: AlertView) {
  return {
    id: alertId,
    ...alert,
    createdAt: alert.createdAt.toISOString(),
    deliveredAt: alert.deliveredAt?.toISOString() ?? null,
    givenUpAt: alert.givenUpAt?.toISOString() ?? null,
  };
}
