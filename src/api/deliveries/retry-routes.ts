import { Type } from 'typebox';
import { retryDelivery, retryEndpoint } from '../../deliveries/retry-now.ts';
import { cancelDelivery } from '../../deliveries/search/shown-delivery.ts';
import type { ExternalApp, ExternalContext } from '../external/external-app.ts';
import { accountObjectId, count, idParams, NoBody, NoQuery, text } from '../external/schema-kit.ts';
import { accountOf, apiActorOf, SCOPES } from '../keys/api-key-auth.ts';
import { documented } from '../openapi/documented.ts';

const DELIVERY_ID = 'dlv_019aa2b37c4d7e8f9a0b1c2d3e4f5062';
const DeliveryParams = idParams('The id of the delivery, as in the event.', DELIVERY_ID);
const EndpointParams = idParams('The id of the endpoint.', '3');

/** What tenants do about deliveries that wait. */
export function retryRoutes(app: ExternalApp, context: ExternalContext): void {
  retryDeliveryRoute(app, context);
  dropDeliveryRoute(app, context);
  retryEndpointRoute(app, context);
}

/** POST /api/external/deliveries/:id/retry: the next attempt is made now. */
function retryDeliveryRoute(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'retryDelivery',
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
      requests: { empty: {} },
      answers: { 200: { description: 'The attempt follows within a moment.' } },
    }),
    params: DeliveryParams,
    querystring: NoQuery,
    body: NoBody,
    response: {
      200: Type.Object(
        {
          id: text(DELIVERY_ID),
          endpointId: text('3'),
          state: Type.Literal('pending'),
          retried: Type.Boolean({ examples: [true] }),
        },
        { title: 'RetriedDelivery' },
      ),
    },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/deliveries/:id/retry', options, async (request) => {
    const tools = { ...accounts, actor: apiActorOf(request) };
    const retried = await retryDelivery(tools, accountOf(request).wabaId, request.params.id);
    return { ...retried, state: 'pending' as const };
  });
}

/** POST /api/external/deliveries/:id/drop: it is not sent any more, and the next of its ordering key goes out. */
function dropDeliveryRoute(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'dropDelivery',
      summary: 'Drop a delivery',
      description:
        'It is not sent any more and stays in the log, and the next event of its ordering key is sent. A replay can send it. For a delivery that is dropped already, nothing changes.',
      tag: 'Events',
      errors: ['delivery_settled', 'attempt_under_way'],
      requests: { empty: {} },
      answers: { 200: { description: 'The delivery is dropped.' } },
    }),
    params: DeliveryParams,
    querystring: NoQuery,
    body: NoBody,
    response: {
      200: Type.Object(
        { id: text(DELIVERY_ID), endpointId: text('3'), state: Type.Literal('dropped') },
        { title: 'DroppedDelivery' },
      ),
    },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/deliveries/:id/drop', options, async (request) => {
    const tools = { ...accounts, actor: apiActorOf(request) };
    const dropped = await cancelDelivery(tools, accountOf(request).wabaId, request.params.id);
    return { ...dropped, state: 'dropped' as const };
  });
}

/** POST /api/external/webhook-endpoints/:id/retry: all that waits for a retry is attempted now. */
function retryEndpointRoute(app: ExternalApp, { accounts }: ExternalContext): void {
  const schema = {
    ...documented({
      operationId: 'retryWebhookEndpoint',
      summary: 'Retry a webhook endpoint now',
      description:
        'Makes the next attempt of every delivery now that waits for a retry, as fast as the limits of the endpoint allow and in order. While the endpoint is probed, its next probe goes out now (`probed`). With `more` ask again for the rest.',
      tag: 'Webhook endpoints',
      errors: ['endpoint_not_enabled'],
      requests: { empty: {} },
      answers: { 200: { description: 'How many are attempted now; 0 when none waited for a retry.' } },
    }),
    params: EndpointParams,
    querystring: NoQuery,
    body: NoBody,
    response: {
      200: Type.Object(
        {
          id: text('3'),
          retried: count(12),
          probed: Type.Boolean({ examples: [false] }),
          more: Type.Boolean({ examples: [false] }),
        },
        { title: 'RetriedWebhookEndpoint' },
      ),
    },
  };
  const options = { schema, config: SCOPES.manageWebhooks };
  app.post('/api/external/webhook-endpoints/:id/retry', options, async (request) => {
    const tools = { ...accounts, actor: apiActorOf(request) };
    const id = accountObjectId(request.params.id);
    return await retryEndpoint(tools, accountOf(request).wabaId, id);
  });
}
