import { Type } from 'typebox';
import { type AlertView, endpointAlertsOf } from '../../../accounts/operations-url.ts';
import { accountOf } from '../../plugins/api-key-auth.ts';
import { SCOPES } from '../../plugins/key-scopes.ts';
import type { ExternalApp, ExternalContext } from '../external-app.ts';
import { listOf } from '../list-of.ts';
import { nullable } from '../nullable.ts';
import { PAGE_PARAMETERS, pageOf, positionOf, rowsToRead } from '../page.ts';
import { alertDocs } from './alert-docs.ts';

const DATE_TIME = Type.String({ format: 'date-time' });

const Alert = Type.Object(
  {
    id: Type.String(),
    endpointId: Type.String(),
    alert: Type.String(),
    state: Type.Enum(['waiting', 'delivered', 'given_up']),
    attempts: Type.Integer(),
    lastError: nullable(Type.String()),
    createdAt: DATE_TIME,
    deliveredAt: nullable(DATE_TIME),
    givenUpAt: nullable(DATE_TIME),
  },
  { title: 'EndpointAlert' },
);

/** GET /api/external/endpoint-alerts: what went wrong with endpoints and who was told, the newest first. */
export function endpointAlerts(app: ExternalApp, { accounts, cursors }: ExternalContext): void {
  const schema = {
    ...alertDocs.list,
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
