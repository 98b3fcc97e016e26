import { Type } from 'typebox';
import { enableEndpoint, holdEndpoint } from '../../features/endpoints/endpoint-modes.ts';
import { endpointStatus } from '../../features/endpoints/endpoints.ts';
import { closed } from '../external/schema-kit.ts';
import { operation } from '../operations/operation.ts';
import { ENDPOINTS_PATH, EndpointWithWaiting, OF_ENDPOINT, wabaOfEndpoint } from './endpoint-schemas.ts';
import { describeEndpoint, endpointJson } from './endpoint-text.ts';

export const pauseWebhookEndpoint = operation({
  id: 'pauseWebhookEndpoint',
  method: 'POST',
  path: `${ENDPOINTS_PATH}/:id/pause`,
  scope: 'manageWebhooks',
  summary: 'Pause a webhook endpoint',
  description: 'Events wait until it is enabled.',
  requests: { 'without a reason': {}, 'with a reason': { reason: 'release' } },
  ...OF_ENDPOINT,
  body: closed({ reason: Type.Optional(Type.String()) }),
  answers: {
    200: {
      description: 'The endpoint after the change.',
      schema: EndpointWithWaiting,
      example: { mode: 'paused', modeReason: 'release' },
    },
  },
  run: async ({ tools, wabaId }, { id, reason = '' }) => {
    await holdEndpoint(tools, wabaId, { id, mode: 'paused', reason });
    return await endpointStatus(tools, wabaId, id);
  },
  json: endpointJson,
  command: {
    name: 'endpoint pause',
    help: 'let its events wait for a while; none is lost',
    example: 'endpoint pause 3',
    waba: wabaOfEndpoint,
    options: {
      reason: {
        flags: '--reason <text>',
        help: 'the reason that operators and tenants see',
        default: 'paused by an operator',
      },
    },
    show: (endpoint, { tools }) => describeEndpoint(tools.config, endpoint),
  },
});

const Enabling = closed({ waiting: Type.Optional(Type.Enum(['send', 'drop'])) });

export const enableWebhookEndpoint = operation({
  id: 'enableWebhookEndpoint',
  method: 'POST',
  path: `${ENDPOINTS_PATH}/:id/enable`,
  scope: 'manageWebhooks',
  summary: 'Enable a webhook endpoint',
  description: 'Enables the endpoint. If deliveries are pending, `waiting` is required: send or drop them.',
  errors: ['waiting_choice_required'],
  requests: {
    'nothing is pending': {},
    'send pending deliveries': { waiting: 'send' },
    'drop them': { waiting: 'drop' },
  },
  ...OF_ENDPOINT,
  body: Enabling,
  answers: {
    200: {
      description: 'The endpoint after the change.',
      schema: Type.Object({ ...EndpointWithWaiting.properties, dropped: Type.Integer() }),
    },
  },
  run: async ({ tools, wabaId, by }, { id, waiting = null }) => {
    const { dropped } = await enableEndpoint(tools, wabaId, { id, waiting, by: by.inText });
    return { dropped, endpoint: await endpointStatus(tools, wabaId, id) };
  },
  json: ({ dropped, endpoint }) => ({ ...endpointJson(endpoint), dropped }),
  command: {
    name: 'endpoint enable',
    help: 'send its events (again)',
    example: 'endpoint enable 3 --waiting send',
    waba: wabaOfEndpoint,
    options: {
      waiting: {
        flags: '--waiting <what>',
        help: 'send pending events first, in order, or drop them permanently; required when there are any',
        showsChoices: true,
      },
    },
    show: ({ dropped, endpoint }, { tools, input }) => {
      const notes =
        input.waiting === 'drop' ? [`${dropped.toLocaleString('en-US')} deliveries were dropped.`] : [];
      const described = describeEndpoint(tools.config, endpoint, notes);
      return { ...described, json: { ...described.json, dropped } };
    },
  },
});
