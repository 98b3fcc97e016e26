import type { Command } from 'commander';
import { Type } from 'typebox';
import { cancelDelivery, wabaOfDelivery } from '../../features/delivery-log/shown-delivery.ts';
import { retryDelivery, retryEndpoint } from '../../features/endpoints/retry-now.ts';
import { OF_ENDPOINT, wabaOfEndpoint } from '../endpoints/endpoint-schemas.ts';
import { count, idParams, named, text } from '../external/schema-kit.ts';
import { operation } from '../operations/operation.ts';
import { commandGroup, operationCommand } from '../operations/operation-command.ts';

const DELIVERY_ID = 'dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062';
const DeliveryParams = idParams('The id of the delivery, as in the event.', DELIVERY_ID);

const RetriedDelivery = named('RetriedDelivery', {
  id: text(DELIVERY_ID),
  endpointId: text('3'),
  state: Type.Literal('pending'),
  retried: Type.Boolean({ examples: [true] }),
});

const retry = operation({
  id: 'retryDelivery',
  method: 'POST',
  path: '/api/external/deliveries/:id/retry',
  scope: 'manageWebhooks',
  summary: 'Retry a delivery now',
  description:
    'Makes the next attempt now instead of at its time; it counts as that attempt. Those behind it in its ordering key follow in their order. While the endpoint is probed, its next probe goes out now. `retried` is false when the delivery was due already.',
  tag: 'Events',
  errors: [
    'delivery_settled',
    'attempt_under_way',
    'delivery_not_first',
    'delivery_held',
    'endpoint_not_enabled',
  ],
  params: DeliveryParams,
  answers: { 200: { description: 'The attempt follows within a moment.', schema: RetriedDelivery } },
  run: ({ tools, wabaId }, { id }) => retryDelivery(tools, wabaId, id),
  json: (retried) => ({ ...retried, state: 'pending' as const }),
  command: {
    name: 'delivery retry',
    help: 'make the next attempt of a delivery now; those behind it follow in order',
    example: `delivery retry ${DELIVERY_ID}`,
    waba: wabaOfDelivery,
    argument: 'of the delivery (dlv_…)',
    show: (retried, { input: { id } }) => ({
      json: retried,
      text: retried.retried
        ? `Delivery ${id} is attempted now.`
        : `Delivery ${id} was due already; it is attempted as soon as its endpoint takes it.`,
    }),
  },
});

const DroppedDelivery = named('DroppedDelivery', {
  id: text(DELIVERY_ID),
  endpointId: text('3'),
  state: Type.Literal('dropped'),
});

const drop = operation({
  id: 'dropDelivery',
  method: 'POST',
  path: '/api/external/deliveries/:id/drop',
  scope: 'manageWebhooks',
  summary: 'Drop a delivery',
  description:
    'It is not sent and stays in the log, and the next event of its ordering key is sent. A replay can send it. Dropping it again changes nothing.',
  tag: 'Events',
  errors: ['delivery_settled', 'attempt_under_way'],
  params: DeliveryParams,
  answers: { 200: { description: 'The delivery is dropped.', schema: DroppedDelivery } },
  run: ({ tools, wabaId }, { id }) => cancelDelivery(tools, wabaId, id),
  json: (dropped) => ({ ...dropped, state: 'dropped' as const }),
  command: {
    name: 'delivery drop',
    help: 'drop a delivery: it stays in the log, and the next of its ordering key is sent',
    example: `delivery drop ${DELIVERY_ID}`,
    waba: wabaOfDelivery,
    argument: 'of the delivery (dlv_…)',
    show: (dropped, { input: { id } }) => ({
      json: dropped,
      text: `Delivery ${id} is dropped; a replay can send it.`,
    }),
  },
});

const RetriedEndpoint = named('RetriedWebhookEndpoint', {
  id: text('3'),
  retried: count(12),
  probed: Type.Boolean({ examples: [false] }),
  more: Type.Boolean({ examples: [false] }),
});

export const retryWebhookEndpoint = operation({
  id: 'retryWebhookEndpoint',
  method: 'POST',
  path: '/api/external/webhook-endpoints/:id/retry',
  scope: 'manageWebhooks',
  summary: 'Retry a webhook endpoint now',
  description:
    'Makes the next attempt of every delivery that waits for a retry now, as fast as the limits of the endpoint allow and in order. While the endpoint is probed, its next probe goes out now (`probed`). If `more` is true, ask again for the rest.',
  errors: ['endpoint_not_enabled'],
  ...OF_ENDPOINT,
  answers: {
    200: {
      description: 'How many are attempted now; 0 when none waited for a retry.',
      schema: RetriedEndpoint,
    },
  },
  run: ({ tools, wabaId }, { id }) => retryEndpoint(tools, wabaId, id),
  json: (retried) => retried,
  command: {
    name: 'endpoint retry',
    help: 'make the next attempt of every delivery that waits for a retry now; while the endpoint is probed, the next probe',
    example: 'endpoint retry 3',
    waba: wabaOfEndpoint,
    show: ({ id, retried, probed, more }) => {
      const probe = probed ? ', and it is probed now' : '';
      const deliveries = retried === 1 ? '1 delivery' : `${retried.toLocaleString('en-US')} deliveries`;
      return {
        json: { id, retried, probed, more },
        text: `${deliveries} to endpoint ${id} ${retried === 1 ? 'is' : 'are'} attempted now${probe}.`,
        notes: more ? ['there are more: run it again.'] : [],
      };
    },
  },
});

export const RETRY_OPERATIONS = [retry, drop, retryWebhookEndpoint];

export function deliveryCommand(): Command {
  const description = 'pending deliveries: make the next attempt now, or drop them; see also: find, replay';
  return commandGroup('delivery', description, [operationCommand(retry), operationCommand(drop)]);
}
