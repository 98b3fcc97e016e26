import { Type } from 'typebox';
import { API_KEY_SCOPES } from '../../features/keys/api-key.ts';
import { deleteNamedKey, type PutKey, putKey, rotateKey } from '../../features/keys/named-keys.ts';
import { PLATFORM_SCOPES } from '../../features/keys/platform-key-store.ts';
import { cancelScheduledOfKey } from '../../features/messages/send/scheduled-messages.ts';
import {
  closed,
  count,
  dateTime,
  named,
  namedClosed,
  nullable,
  optionalParameter,
  parameter,
  Time,
  text,
  timeOf,
} from '../external/schema-kit.ts';
import { countingNew, grantingOf, inTenant } from './in-tenant.ts';
import { platformOperation } from './platform-operation.ts';
import { EXTERNAL_ID, REFERENCE, WABA_ID, WABA_PATH } from './platform-schemas.ts';

const KEY_PATH = `${WABA_PATH}/keys/:keyRef` as const;

const OF_KEY = Type.Object({
  externalId: EXTERNAL_ID,
  wabaId: WABA_ID,
  keyRef: parameter(
    Type.String({ pattern: REFERENCE }),
    'Your own name of the key, unique in the WABA.',
    'shop-server',
  ),
});

const SCOPES = Type.Array(Type.Enum([...API_KEY_SCOPES]), { examples: [['send', 'manage_webhooks']] });

const EXAMPLE_KEY = `ck_${'1f0a2b3c'.repeat(8)}`;

const KEY_MEMBERS = {
  keyRef: text('shop-server'),
  id: text('3'),
  name: text('shop server'),
  prefix: text('ck_1f0a2b3c'),
  lastFour: text('9d2e'),
  scopes: SCOPES,
  allowedNetworks: nullable(Type.Array(Type.String()), ['192.0.2.0/24']),
  state: Type.Enum(['active', 'expired', 'revoked'], { examples: ['active'] }),
  createdAt: dateTime('2026-11-01T08:00:00.000Z'),
  expiresAt: nullable(dateTime()),
  revokedAt: nullable(dateTime()),
  lastUsedAt: nullable(dateTime()),
  apiKey: nullable(
    Type.String({ description: 'In the answer that made the key only; null otherwise.' }),
    EXAMPLE_KEY,
  ),
};

const TenantKey = named('TenantKey', KEY_MEMBERS);

const RotatedKey = named('RotatedTenantKey', {
  ...KEY_MEMBERS,
  replacedKeyId: text('2'),
  replacedEndsAt: nullable(dateTime('2026-11-21T09:30:00.000Z')),
});

function keyJson({ wabaId, maxMessagesPerDay, recipients, ...key }: PutKey) {
  return key;
}

const putTenantKey = platformOperation({
  id: 'putTenantKey',
  method: 'PUT',
  path: KEY_PATH,
  scope: 'keys',
  summary: 'Make an API key of a tenant',
  description:
    'Makes the key (201) with `apiKey`, which is shown this once. Repeated: 200, and `apiKey` is null. A key keeps its scopes and networks; name and expiry are those of the request that made it. ' +
    'The scopes must be among the `grantableScopes` of the platform key.',
  tag: 'Keys',
  errors: ['unknown_tenant', 'unknown_waba', 'tenant_suspended', 'scope_not_grantable', 'key_differs'],
  requests: { 'a key': { name: 'shop server', scopes: ['send', 'manage_webhooks'] } },
  params: OF_KEY,
  body: namedClosed('TenantKeyInput', {
    name: Type.String({ minLength: 1, maxLength: 200 }),
    scopes: Type.Array(Type.Enum([...API_KEY_SCOPES]), { minItems: 1, maxItems: API_KEY_SCOPES.length }),
    expiresAt: Type.Optional(Time),
    allowedNetworks: Type.Optional(Type.Array(Type.String({ maxLength: 50 }), { maxItems: 50 })),
  }),
  answers: {
    200: { schema: TenantKey, description: 'The WABA has the key.', example: { apiKey: null } },
    201: { schema: TenantKey, description: 'The key was made.' },
  },
  run: async (call, { externalId, wabaId, keyRef, name, scopes, expiresAt, allowedNetworks = null }) => {
    const given = { name, scopes, allowedNetworks, expiresAt: timeOf('expiresAt', expiresAt) };
    const rules = { mayGive: grantingOf(call), countNew: countingNew(call, 'new-tenant-keys') };
    return await inTenant(call, { externalId, wabaId }, (tools) =>
      putKey(tools, wabaId, keyRef, given, rules),
    );
  },
  status: ({ made }) => (made ? 201 : 200),
  json: ({ key }) => keyJson(key),
  example:
    'put-tenant-key acme 900000000000101 shop-server --name "shop server" --scopes send,manage_webhooks',
});

const rotateTenantKey = platformOperation({
  id: 'rotateTenantKey',
  method: 'POST',
  path: `${KEY_PATH}/rotate`,
  scope: 'keys',
  summary: 'Replace an API key of a tenant',
  description:
    'Makes a key with the same scopes, networks and lifetime. `apiKey` is shown this once; the earlier key ends after `overlapHours`. Repeated, it makes a further key.',
  tag: 'Keys',
  errors: ['unknown_tenant', 'unknown_waba', 'unknown_key', 'tenant_suspended', 'scope_not_grantable'],
  requests: { 'with a day to change over': { overlapHours: 24 } },
  params: OF_KEY,
  body: namedClosed('TenantKeyRotation', { overlapHours: Type.Integer({ minimum: 0, maximum: 168 }) }),
  answers: { 200: { schema: RotatedKey, description: 'The new key.' } },
  run: async (call, { externalId, wabaId, keyRef, overlapHours }) => {
    const rules = { mayGive: grantingOf(call), countNew: countingNew(call, 'new-tenant-keys') };
    return await inTenant(call, { externalId, wabaId }, (tools) =>
      rotateKey(tools, wabaId, keyRef, overlapHours, rules),
    );
  },
  json: ({ replacedKeyId, replacedEndsAt, ...key }) => ({ ...keyJson(key), replacedKeyId, replacedEndsAt }),
  example: 'rotate-tenant-key acme 900000000000101 shop-server --overlap-hours 24',
});

const deleteTenantKey = platformOperation({
  id: 'deleteTenantKey',
  method: 'DELETE',
  path: KEY_PATH,
  scope: 'keys',
  summary: 'Revoke an API key of a tenant',
  description:
    'From the next request on, the key returns 401. Its keyRef is free again. A second time returns 404. What the key has scheduled is still sent, unless you say `cancelScheduled=true`.',
  tag: 'Keys',
  errors: ['unknown_tenant', 'unknown_waba', 'unknown_key'],
  params: OF_KEY,
  query: closed({
    cancelScheduled: optionalParameter(
      Type.Boolean(),
      'Cancel the scheduled messages of the key that were not sent yet.',
      true,
    ),
  }),
  answers: {
    200: {
      schema: named('RevokedTenantKey', {
        id: text('3'),
        revokedAt: dateTime('2026-11-20T10:00:00.000Z'),
        cancelledMessages: count(0),
      }),
      description: 'The key is revoked.',
    },
  },
  run: async (call, { externalId, wabaId, keyRef, cancelScheduled = false }) =>
    await inTenant(call, { externalId, wabaId }, async (tools) => {
      const revoked = await deleteNamedKey(tools, wabaId, keyRef);
      const cancelledMessages = cancelScheduled
        ? await cancelScheduledOfKey(tools.database, wabaId, revoked.id)
        : 0;
      return { ...revoked, cancelledMessages };
    }),
  json: (revoked) => revoked,
  example: 'delete-tenant-key acme 900000000000101 shop-server',
});

const getOwnPlatformKey = platformOperation({
  id: 'getOwnPlatformKey',
  method: 'GET',
  path: '/api/platform/keys/self',
  scope: 'any',
  summary: 'Get the platform key of this request',
  description: 'What the platform key may do; never the key itself.',
  tag: 'Service',
  answers: {
    200: {
      schema: named('PlatformKey', {
        id: text('2'),
        name: text('crm'),
        prefix: text('hp_1f0a2b3c'),
        lastFour: text('9d2e'),
        scopes: Type.Array(Type.Enum([...PLATFORM_SCOPES]), {
          examples: [['read', 'tenants', 'wabas', 'keys']],
        }),
        grantableScopes: SCOPES,
        allowedNetworks: nullable(Type.Array(Type.String()), ['203.0.113.0/28']),
        createdAt: dateTime('2026-11-01T08:00:00.000Z'),
        expiresAt: nullable(dateTime()),
        lastUsedAt: nullable(dateTime(), '2026-11-21T09:30:00.000Z'),
      }),
      description: 'The key.',
    },
  },
  run: async ({ key }) => {
    if (key === null) throw new Error('the call has no platform key');
    const { id, name, prefix, lastFour, scopes, grantableScopes, allowedNetworks, ...times } = key;
    const { createdAt, expiresAt, lastUsedAt } = times;
    const shown = { id, name, prefix, lastFour, scopes, grantableScopes, allowedNetworks };
    return { ...shown, createdAt, expiresAt, lastUsedAt };
  },
  json: (key) => key,
  example: null,
});

export const KEY_OPERATIONS = [putTenantKey, rotateTenantKey, deleteTenantKey, getOwnPlatformKey];
