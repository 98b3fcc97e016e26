import { Type } from 'typebox';
import { listPlatformKeys } from '../../features/keys/platform-key-store.ts';
import { platformKeyName } from '../../features/keys/platform-keys.ts';
import { listAuditOf } from '../../platform/audit/audit.ts';
import { PAGE_PARAMETERS, readPage } from '../external/page.ts';
import { AnyObject, closed, dateTime, listOf, named, nullable, text } from '../external/schema-kit.ts';
import { platformOperation } from './platform-operation.ts';
import { tenantFilter, tenantIdOf } from './platform-schemas.ts';

const Entry = named('PlatformAuditEntry', {
  id: text('4711'),
  at: dateTime('2026-11-20T10:00:00.000Z'),
  userId: nullable(Type.Integer(), 7),
  wabaId: nullable(Type.String(), '900000000000101'),
  actor: text('platform key 2'),
  action: text('key.created'),
  target: text('API key 3'),
  detail: { ...AnyObject, examples: [{ name: 'shop server' }] },
  requestId: nullable(Type.String(), 'req_0f3c2a9d5b7e4816a0c4d2e1'),
  ip: nullable(Type.String(), '203.0.113.7'),
});

const MAX_LISTED = 100;

const listPlatformAudit = platformOperation({
  id: 'listPlatformAudit',
  method: 'GET',
  path: '/api/platform/audit',
  scope: 'read',
  summary: 'List the changes of platform keys',
  description: 'The newest entries of the audit log that platform keys caused, of all tenants or of one.',
  tag: 'Service',
  errors: ['unknown_tenant'],
  query: closed({
    ...PAGE_PARAMETERS,
    tenant: tenantFilter('entries'),
  }),
  answers: { 200: { schema: listOf(Entry), description: 'A page of entries.' } },
  run: async ({ tools: { database }, cursors }, { tenant, ...page }) => {
    const tenantId = await tenantIdOf(database, tenant);
    const actors = (await listPlatformKeys(database)).map(({ id }) => platformKeyName(id));
    return await readPage({ cursors, wabaId: 'platform' }, page, {
      name: JSON.stringify(['audit', tenant]),
      find: ([beforeId = null], { limit = MAX_LISTED }) =>
        listAuditOf(database, actors, { tenantId, beforeId, limit }),
      position: ({ id }) => [id],
    });
  },
  json: ({ rows, ...page }) => ({
    data: rows.map(({ tenantId, actorUserId, ...entry }) => ({
      ...entry,
      userId: tenantId === null ? null : Number(tenantId),
    })),
    ...page,
  }),
  example: 'list-platform-audit --tenant acme',
});

export const AUDIT_OPERATIONS = [listPlatformAudit];
