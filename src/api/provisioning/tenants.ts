import { Type } from 'typebox';
import {
  changeTenant,
  externalTenant,
  listExternalTenants,
  putTenant,
} from '../../features/accounts/external-tenants.ts';
import { readTenantPolicy, setTenantPolicy } from '../../features/accounts/tenant-policies.ts';
import { removeTenant } from '../../ops/erasures/account-removal.ts';
import { invalidValue } from '../../platform/request-input.ts';
import { PAGE_PARAMETERS, readPage } from '../external/page.ts';
import {
  closed,
  count,
  listOf,
  named,
  namedClosed,
  optionalParameter,
  Time,
  text,
  timeOf,
} from '../external/schema-kit.ts';
import { countingNew, inTenant } from './in-tenant.ts';
import { platformOperation } from './platform-operation.ts';
import {
  Metadata,
  OF_TENANT,
  policyMembers,
  REFERENCE,
  TENANT_PATH,
  Tenant,
  tenantJson,
} from './platform-schemas.ts';

const State = Type.Enum(['active', 'suspended']);

const putTenantOperation = platformOperation({
  id: 'putTenant',
  method: 'PUT',
  path: TENANT_PATH,
  scope: 'tenants',
  summary: 'Make or update a tenant',
  description:
    'Makes a tenant under your own id (201), or brings it up to date (200); what is left out stays. `userId` gives your id to a tenant that was made elsewhere.',
  tag: 'Tenants',
  errors: ['unknown_tenant', 'tenant_has_external_id', 'external_id_taken'],
  requests: { 'a tenant': { businessName: 'Acme Ltd', metadata: { plan: 'gold' } } },
  params: OF_TENANT,
  body: namedClosed('TenantInput', {
    businessName: Type.String({ minLength: 1, maxLength: 200 }),
    metadata: Type.Optional(Metadata),
    userId: Type.Optional(Type.Integer({ minimum: 1, maximum: 1e17 })),
  }),
  answers: {
    200: { schema: Tenant, description: 'The tenant was known.' },
    201: { schema: Tenant, description: 'The tenant was made, or found by its `userId`.' },
  },
  run: async (call, { externalId, userId, ...given }) => {
    const tenant = { ...given, ...(userId !== undefined && { userId: String(userId) }) };
    const put = await putTenant(call.tools, externalId, tenant, countingNew(call, 'new-tenants'));
    return { made: put.made, tenant: await tenantJson(call, put.tenant) };
  },
  status: ({ made }) => (made ? 201 : 200),
  json: ({ tenant }) => tenant,
  example: 'put-tenant acme --business-name "Acme Ltd"',
});

const listTenants = platformOperation({
  id: 'listTenants',
  method: 'GET',
  path: '/api/platform/tenants',
  scope: 'read',
  summary: 'List tenants',
  description:
    'The oldest first, with their WABAs, quotas and usage. An `externalId` of null: the tenant was made elsewhere.',
  tag: 'Tenants',
  query: closed({
    ...PAGE_PARAMETERS,
    state: Type.Optional({ ...State, description: 'Only those in this state.', examples: ['suspended'] }),
    updatedSince: optionalParameter(
      Time,
      'Only those that were made or changed since this time.',
      '2026-11-19T00:00:00Z',
    ),
  }),
  answers: { 200: { schema: listOf(Tenant), description: 'A page of tenants.' } },
  run: async (call, { state, updatedSince, ...page }) => {
    const since = timeOf('updatedSince', updatedSince) ?? undefined;
    const place = { cursors: call.cursors, wabaId: 'platform' };
    const { rows, ...rest } = await readPage(place, page, {
      name: JSON.stringify(['tenants', state, updatedSince]),
      find: ([afterId = '0'], { limit = null }) =>
        listExternalTenants(call.tools.database, { afterId, limit, state, updatedSince: since }),
      position: ({ userId }) => [userId],
    });
    return { data: await Promise.all(rows.map((tenant) => tenantJson(call, tenant))), ...rest };
  },
  json: (page) => page,
  example: 'list-tenants --state suspended',
});

const getTenant = platformOperation({
  id: 'getTenant',
  method: 'GET',
  path: TENANT_PATH,
  scope: 'read',
  summary: 'Get a tenant',
  description: 'With its WABAs and their numbers, its quotas, and what it stores.',
  tag: 'Tenants',
  errors: ['unknown_tenant'],
  params: OF_TENANT,
  answers: { 200: { schema: Tenant, description: 'The tenant.' } },
  run: async (call, { externalId }) =>
    await tenantJson(call, await externalTenant(call.tools.database, externalId)),
  json: (tenant) => tenant,
  example: 'get-tenant acme',
});

const updateTenant = platformOperation({
  id: 'updateTenant',
  method: 'PATCH',
  path: TENANT_PATH,
  scope: 'tenants',
  summary: 'Rename, suspend or resume a tenant',
  description:
    'A suspended tenant sends nothing, gets no keys and changes nothing in the portal: those requests return 403 `tenant_suspended`. ' +
    'Its messages are received and delivered as before, so nothing is lost. `newExternalId` is your new id of the tenant.',
  tag: 'Tenants',
  errors: ['unknown_tenant', 'external_id_taken'],
  requests: { suspend: { state: 'suspended', suspendReason: 'The invoice of October is due.' } },
  params: OF_TENANT,
  body: namedClosed('TenantChange', {
    businessName: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    state: Type.Optional(State),
    suspendReason: Type.Optional(Type.String({ maxLength: 200 })),
    newExternalId: Type.Optional(Type.String({ pattern: REFERENCE })),
  }),
  answers: { 200: { schema: Tenant, description: 'The tenant as it is now.' } },
  run: async (call, { externalId, ...change }) =>
    await tenantJson(call, await changeTenant(call.tools, externalId, change)),
  json: (tenant) => tenant,
  example: 'update-tenant acme --state suspended --suspend-reason "The invoice of October is due."',
});

const Policy = named('TenantPolicy', policyMembers);

const putTenantPolicy = platformOperation({
  id: 'putTenantPolicy',
  method: 'PUT',
  path: `${TENANT_PATH}/policy`,
  scope: 'tenants',
  summary: 'Set quotas and retention of a tenant',
  description:
    'Null removes a value, so that the installation’s holds; what is left out stays. The answer has the tenant’s own values.',
  tag: 'Tenants',
  errors: ['unknown_tenant'],
  requests: { 'files for 90 days': { mediaDays: 90, storedBytesQuota: 10_737_418_240 } },
  params: OF_TENANT,
  body: Type.Partial(Policy, { title: 'TenantPolicyInput', additionalProperties: false }),
  answers: { 200: { schema: Policy, description: 'The tenant’s own values; null: the installation’s.' } },
  run: async (call, { externalId, ...change }) =>
    await inTenant(call, { externalId }, async (tools, { userId }) => {
      await setTenantPolicy({ ...tools, defaults: call.policyDefaults }, userId, change);
      return await readTenantPolicy(tools.database, userId);
    }),
  json: (policy) => policy,
  example: 'put-tenant-policy acme --media-days 90',
});

const removeTenantOperation = platformOperation({
  id: 'removeTenant',
  method: 'DELETE',
  path: TENANT_PATH,
  scope: 'remove',
  summary: 'Remove a tenant',
  description:
    'Its keys are revoked, and its endpoints are deleted with their pending deliveries. The history of its WABAs is kept; no other tenant ' +
    'can have them. `confirm` is the externalId once more. A second time returns 404.',
  tag: 'Tenants',
  errors: ['unknown_tenant', 'tenant_in_use'],
  requests: { confirmed: { confirm: 'acme' } },
  params: OF_TENANT,
  body: namedClosed('TenantRemoval', { confirm: Type.String() }),
  answers: {
    200: {
      schema: named('RemovedTenant', {
        userId: count(7),
        wabaIds: Type.Array(text('900000000000101')),
        kept: Type.Array(text('900000000000101'), { description: 'The WABAs whose history is kept.' }),
      }),
      description: 'The tenant is removed.',
    },
  },
  run: async ({ tools }, { externalId, confirm }) => {
    if (confirm !== externalId) throw invalidValue('The member confirm must be the externalId.', 'confirm');
    const { userId } = await externalTenant(tools.database, externalId);
    return await removeTenant(tools, userId);
  },
  json: ({ userId, ...removed }) => ({ userId: Number(userId), ...removed }),
  example: 'remove-tenant acme --confirm acme',
});

export const TENANT_OPERATIONS = [
  putTenantOperation,
  listTenants,
  getTenant,
  updateTenant,
  putTenantPolicy,
  removeTenantOperation,
];
