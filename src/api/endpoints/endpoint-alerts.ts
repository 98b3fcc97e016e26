import { Type } from 'typebox';
import { type AlertView, endpointAlertsOf } from '../../ops/alerts/operations-url.ts';
import { PageQuery, readPage } from '../external/page.ts';
import { count, dateTime, listOf, named, nullable, text } from '../external/schema-kit.ts';
import { restOperation } from '../operations/operation.ts';

const Alert = named('EndpointAlert', {
  id: text('alr_019aa2b37c4d7e8f9a0b1c2d3e4f5063'),
  endpointId: text('3'),
  alert: text('endpoint.failing'),
  state: Type.Enum(['waiting', 'delivered', 'given_up'], { examples: ['delivered'] }),
  attempts: count(1),
  lastError: nullable(Type.String()),
  createdAt: dateTime(),
  deliveredAt: nullable(dateTime(), '2026-11-21T09:30:00.210Z'),
  givenUpAt: nullable(dateTime()),
});

export const listEndpointAlerts = restOperation({
  id: 'listEndpointAlerts',
  method: 'GET',
  path: '/api/external/endpoint-alerts',
  scope: 'readWebhooks',
  summary: 'List alerts about endpoints',
  description:
    'The newest first, also those that were sent nowhere. `alert` is `endpoint.failing`, `endpoint.disabled`, ' +
    '`endpoint.recovered` or `endpoint.deliveries_failed`; more can come.',
  tag: 'Endpoint alerts',
  query: PageQuery,
  answers: { 200: { description: 'A page of alerts.', schema: listOf(Alert) } },
  run: async (call, input) => {
    const { rows, ...page } = await readPage(call, input, {
      name: 'endpoint-alerts',
      find: ([createdAt, uuid], limit) => {
        const before = createdAt === undefined || uuid === undefined ? null : { createdAt, uuid };
        return endpointAlertsOf(call.tools, call.wabaId, { before, ...limit });
      },
      position: positionIn,
    });
    return { data: rows.map(alertJson), ...page };
  },
});

/** PostgreSQL reads a UUID without dashes too. */
function positionIn({ createdAt, alertId }: AlertView): [string, string] {
  return [createdAt.toISOString(), alertId.slice('alr_'.length)];
}

function alertJson({ alertId, wabaId, isEndpointDeleted, ...alert }: AlertView) {
  return { id: alertId, ...alert };
}
