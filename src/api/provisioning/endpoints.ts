import { Type } from 'typebox';
import { findEndpointIdByRef } from '../../engine/endpoint/store.ts';
import { externalTenant } from '../../features/accounts/external-tenants.ts';
import { deleteEndpoint } from '../../features/endpoints/endpoint-modes.ts';
import { addEndpoint, endpointStatus, updateEndpoint } from '../../features/endpoints/endpoints.ts';
import { isUniqueViolation } from '../../platform/postgres/error-class.ts';
import { RequestError } from '../../platform/request-input.ts';
import { CreatedEndpoint, EndpointWithWaiting, NewEndpoint } from '../endpoints/endpoint-schemas.ts';
import { endpointJson } from '../endpoints/endpoint-text.ts';
import { count, named, parameter, text } from '../external/schema-kit.ts';
import { requireWaba } from './in-tenant.ts';
import { type PlatformCall, platformOperation } from './platform-operation.ts';
import { EXTERNAL_ID, REFERENCE, WABA_ID, WABA_PATH } from './platform-schemas.ts';

const ENDPOINT_PATH = `${WABA_PATH}/endpoints/:endpointRef` as const;

const OF_ENDPOINT = Type.Object({
  externalId: EXTERNAL_ID,
  wabaId: WABA_ID,
  endpointRef: parameter(
    Type.String({ pattern: REFERENCE }),
    'Your own name of the endpoint, unique in the WABA.',
    'crm',
  ),
});

type Place = { externalId: string; wabaId: string; endpointRef: string };

/** The id of the endpoint of this name; null: there is none. Throws RequestError: `unknown_tenant`, `unknown_waba`. */
async function idOf({ tools: { database } }: PlatformCall, { externalId, wabaId, endpointRef }: Place) {
  requireWaba(await externalTenant(database, externalId), wabaId);
  return await findEndpointIdByRef(database, wabaId, endpointRef);
}

type Options = Parameters<typeof addEndpoint>[2];

/** Names are resolved, and URLs verified, under no lock: of equal requests the second finds what the first made. */
async function putEndpoint(call: PlatformCall, place: Place, options: Options) {
  const { wabaId, endpointRef: ref } = place;
  const { tools } = call;
  let id = await idOf(call, place);
  if (id === null) {
    try {
      return { made: true as const, endpoint: await addEndpoint(tools, wabaId, { ...options, ref }) };
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      id = await idOf(call, place);
    }
  }
  if (id === null) throw unknownEndpoint();
  await updateEndpoint(tools, wabaId, id, options);
  return { made: false as const, endpoint: await endpointStatus(tools, wabaId, id) };
}

function unknownEndpoint(): RequestError {
  return new RequestError('unknown_endpoint', 'There is no such webhook endpoint.');
}

const putTenantEndpoint = platformOperation({
  id: 'putTenantEndpoint',
  method: 'PUT',
  path: ENDPOINT_PATH,
  scope: 'endpoints',
  summary: 'Add or change a webhook endpoint',
  description:
    'The body is that of `POST /api/external/webhook-endpoints`. 201 has the secret, which is shown this once. Repeated: 200, with the settings that are given; what is left out stays.',
  tag: 'Endpoints',
  errors: [
    ...(['unknown_tenant', 'unknown_waba', 'invalid_url', 'unknown_phone_number'] as const),
    ...(['url_is_webhook_endpoint', 'url_not_verified', 'too_many_endpoints', 'deliveries_pending'] as const),
    'buffer_needs_conversation_order',
  ],
  requests: { 'an endpoint': { url: 'https://crm.example/whatsapp', eventTypes: ['message', 'status'] } },
  params: OF_ENDPOINT,
  body: NewEndpoint,
  answers: {
    200: { schema: EndpointWithWaiting, description: 'The endpoint was known.' },
    201: {
      schema: CreatedEndpoint,
      description: 'The endpoint was added; events that come from now on are sent to it.',
    },
  },
  run: async (call, { externalId, wabaId, endpointRef, ...options }) =>
    await putEndpoint(call, { externalId, wabaId, endpointRef }, options),
  status: ({ made }) => (made ? 201 : 200),
  json: (put) => (put.made ? endpointJson(put.endpoint) : endpointJson(put.endpoint)),
  example: 'put-tenant-endpoint acme 900000000000101 crm --url https://crm.example/whatsapp',
});

const deleteTenantEndpoint = platformOperation({
  id: 'deleteTenantEndpoint',
  method: 'DELETE',
  path: ENDPOINT_PATH,
  scope: 'endpoints',
  summary: 'Delete a webhook endpoint',
  description: 'Its pending deliveries are dropped; the log stays. A second time returns 404.',
  tag: 'Endpoints',
  errors: ['unknown_tenant', 'unknown_waba', 'not_found'],
  params: OF_ENDPOINT,
  answers: {
    200: {
      schema: named('DeletedTenantEndpoint', { id: text('3'), dropped: count(2) }),
      description: 'The endpoint is deleted; `dropped` counts the deliveries that are not sent any more.',
    },
  },
  run: async (call, place) => {
    const id = await idOf(call, place);
    if (id === null) throw unknownEndpoint();
    return await deleteEndpoint(call.tools, place.wabaId, id);
  },
  json: ({ id, dropped }) => ({ id, dropped }),
  example: 'delete-tenant-endpoint acme 900000000000101 crm',
});

export const ENDPOINT_OPERATIONS = [putTenantEndpoint, deleteTenantEndpoint];
