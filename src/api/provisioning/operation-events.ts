import { Type } from 'typebox';
import { externalTenant, namesOfTenants } from '../../features/accounts/external-tenants.ts';
import { type ChainedEntry, readAuditFeed } from '../../platform/audit/audit-feed.ts';
import { invalidValue, shown } from '../../platform/request-input.ts';
import { PAGE_PARAMETERS, walkOf } from '../external/page.ts';
import {
  closed,
  dateTime,
  listOf,
  named,
  nullable,
  optionalParameter,
  text,
} from '../external/schema-kit.ts';
import { platformOperation } from './platform-operation.ts';
import { REFERENCE } from './platform-schemas.ts';

/** The entries of the audit log that are events, by their action; all others stay in the log. */
const TYPES: Readonly<Record<string, string>> = {
  'tenant.created': 'tenant.created',
  'tenant.renamed': 'tenant.updated',
  'tenant.external_id_set': 'tenant.updated',
  'tenant.metadata_set': 'tenant.updated',
  'tenant.policy_changed': 'tenant.updated',
  'tenant.suspended': 'tenant.suspended',
  'tenant.resumed': 'tenant.resumed',
  'tenant.removed': 'tenant.removed',
  'waba.saved': 'waba.saved',
  'waba.access_token_set': 'waba.saved',
  'waba.removed': 'waba.removed',
  'waba.numbers_followed': 'waba.numbers_changed',
  'waba.number_removed': 'waba.numbers_changed',
  'key.created': 'key.created',
  'key.limited': 'key.updated',
  'key.rotated': 'key.updated',
  'key.revoked': 'key.revoked',
  'endpoint.created': 'endpoint.created',
  'endpoint.updated': 'endpoint.updated',
  'endpoint.paused': 'endpoint.paused',
  'endpoint.disabled': 'endpoint.disabled',
  'endpoint.enabled': 'endpoint.enabled',
  'endpoint.deleted': 'endpoint.deleted',
  'erasure.done': 'erasure.done',
};

const NAMES = [...new Set(Object.values(TYPES))];

/** Of the details, ids and words of ours: no names, texts, URLs or reasons that people wrote. */
const SHOWN_DETAILS = [
  'scopes',
  'expiresAt',
  'endsAt',
  'replacedBy',
  'accessToken',
  'phoneNumberIds',
  'added',
  'removed',
  'phoneNumberId',
  'kept',
];

const OperationEvent = named('OperationEvent', {
  id: text('opn_4711'),
  type: Type.Enum(NAMES, { examples: ['key.created'] }),
  occurredAt: dateTime('2026-11-20T10:00:00.000Z'),
  sequence: Type.Integer({ examples: [4711] }),
  tenant: nullable(Type.Object({ userId: Type.Integer(), externalId: nullable(Type.String()) }), {
    userId: 7,
    externalId: 'acme',
  }),
  wabaId: nullable(Type.String(), '900000000000101'),
  actor: text('platform key 3'),
  data: Type.Object(
    {},
    { additionalProperties: true, examples: [{ keyId: '3', scopes: 'send, manage_webhooks' }] },
  ),
});

export const listOperationEvents = platformOperation({
  id: 'listOperationEvents',
  method: 'GET',
  path: '/api/platform/operation-events',
  scope: 'read',
  summary: 'List operation events',
  description:
    'What changed in the installation, in the order of the commits; an event is written with its change, so none is lost or invented. ' +
    'There is always a `nextCursor`: keep it, and ask again. A page may be empty while `hasMore` is true. Events are kept as long as the audit log, 30 days at least. ' +
    'They hold no data of customers.',
  tag: 'Service',
  errors: ['unknown_tenant'],
  query: closed({
    ...PAGE_PARAMETERS,
    types: optionalParameter(
      Type.String({ maxLength: 500 }),
      'Only events of these types, separated by commas; `tenant.*` is all that begin with `tenant.`.',
      'tenant.*,key.created',
    ),
    tenant: optionalParameter(
      Type.String({ pattern: REFERENCE }),
      'Only events of the tenant with this externalId.',
      'acme',
    ),
  }),
  answers: { 200: { schema: listOf(OperationEvent), description: 'A page of events, the oldest first.' } },
  run: async ({ tools: { database }, cursors }, { types, tenant, ...page }) => {
    const tenantId = tenant === undefined ? null : (await externalTenant(database, tenant)).userId;
    const walk =
      cursors === null
        ? null
        : walkOf(cursors, ['operation events'], { ...page, order: 'asc' }, { types, tenant });
    const [after = '0'] = walk?.after ?? [];
    const limit = walk?.limit ?? MAX_LISTED;
    const { entries, position, hasMore } = await readAuditFeed(database, {
      actions: actionsOf(types),
      tenantId,
      after,
      limit,
    });
    const names = await namesOfTenants(
      database,
      entries.flatMap((entry) => entry.tenantId ?? []),
    );
    const nextCursor = walk?.nextCursor([position], hasMore) ?? null;
    return { data: entries.map((entry) => eventOf(entry, names)), hasMore, nextCursor };
  },
  json: (page) => page,
  example: 'list-operation-events --types tenant.*',
});

const MAX_LISTED = 100;

/** Throws RequestError `invalid_value`. */
function actionsOf(types: string | undefined): string[] {
  const wanted = types?.split(',').map((type) => type.trim()) ?? ['*'];
  const isOne = (pattern: string, type: string) =>
    pattern === '*' || pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1)));
  const unknown = wanted.find((pattern) => !NAMES.some((type) => isOne(pattern, type)));
  if (unknown !== undefined)
    throw invalidValue(`There are no events of the type ${shown(unknown)}.`, 'types');
  return Object.keys(TYPES).filter((action) => wanted.some((pattern) => isOne(pattern, TYPES[action] ?? '')));
}

const OBJECT_ID = /^(API key|endpoint) (\d+)$/;

function eventOf(entry: ChainedEntry, names: ReadonlyMap<string, string | null>) {
  const { position, at, tenantId, wabaId, actorUserId, actor, action, target, detail } = entry;
  const [, kind, id] = OBJECT_ID.exec(target) ?? [];
  const details = SHOWN_DETAILS.flatMap((name) => (detail[name] === undefined ? [] : [[name, detail[name]]]));
  return {
    id: `opn_${position}`,
    type: TYPES[action] ?? action,
    occurredAt: at,
    sequence: Number(position),
    tenant: tenantId === null ? null : { userId: Number(tenantId), externalId: names.get(tenantId) ?? null },
    wabaId,
    // The name of a user is an e-mail address.
    actor: actorUserId === null ? actor.replace(/^.*@.*$/, 'a user') : `user ${actorUserId}`,
    data: {
      ...Object.fromEntries(details),
      ...(id !== undefined && { [kind === 'endpoint' ? 'endpointId' : 'keyId']: id }),
    },
  };
}
