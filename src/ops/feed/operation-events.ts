import { namesOfTenants } from '../../features/accounts/external-tenants.ts';
import { type ChainedEntry, readAuditFeed } from '../../platform/audit/audit-feed.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { invalidValue, shown } from '../../platform/request-input.ts';

/** The types of events, what they say, and which entries of the audit log they are; all others stay in the log. */
export const OPERATION_EVENTS: Readonly<Record<string, { about: string; actions: readonly string[] }>> = {
  'tenant.created': { about: 'A tenant was added', actions: ['tenant.created'] },
  'tenant.updated': {
    about: 'A tenant has another name, externalId, metadata, policy or usage alert',
    actions: [
      'tenant.renamed',
      'tenant.external_id_set',
      'tenant.metadata_set',
      'tenant.policy_changed',
      'tenant.usage_alert_set',
    ],
  },
  'tenant.suspended': { about: 'A tenant was suspended', actions: ['tenant.suspended'] },
  'tenant.resumed': { about: 'A suspension ended', actions: ['tenant.resumed'] },
  'tenant.removed': { about: 'A tenant was removed', actions: ['tenant.removed'] },
  'waba.saved': {
    about: 'A WABA was added, or has another access token or further numbers',
    actions: ['waba.saved', 'waba.access_token_set'],
  },
  'waba.numbers_changed': {
    about: 'Numbers were added to a WABA or removed from it',
    actions: ['waba.numbers_followed', 'waba.number_removed'],
  },
  'number.connected': {
    about: 'A number is registered, and its webhooks arrive',
    actions: ['number.connected'],
  },
  'setup_link.done': { about: 'A customer connected a number by a link', actions: ['setup_link.done'] },
  'setup_link.failed': { about: 'A step of connecting a number failed', actions: ['setup_link.failed'] },
  'setup_link.expired': { about: 'A set-up link ended unused', actions: ['setup_link.expired'] },
  'waba.removed': { about: 'A WABA was removed, with its keys and endpoints', actions: ['waba.removed'] },
  'key.created': { about: 'An API key was made', actions: ['key.created'] },
  'key.updated': {
    about: 'An API key has other limits, or was replaced',
    actions: ['key.limited', 'key.rotated'],
  },
  'key.revoked': { about: 'An API key was revoked', actions: ['key.revoked'] },
  'endpoint.created': { about: 'A webhook endpoint was added', actions: ['endpoint.created'] },
  'endpoint.updated': { about: 'A webhook endpoint was changed', actions: ['endpoint.updated'] },
  'endpoint.paused': { about: 'A webhook endpoint was paused', actions: ['endpoint.paused'] },
  'endpoint.disabled': { about: 'A webhook endpoint was disabled', actions: ['endpoint.disabled'] },
  'endpoint.enabled': { about: 'A webhook endpoint was enabled', actions: ['endpoint.enabled'] },
  'endpoint.deleted': { about: 'A webhook endpoint was deleted', actions: ['endpoint.deleted'] },
  'user.invited': { about: 'A user was invited', actions: ['user.invited'] },
  'user.uninvited': { about: 'An invitation was withdrawn', actions: ['user.invitation_withdrawn'] },
  'user.created': { about: 'An invitation was accepted', actions: ['user.invitation_accepted'] },
  'user.updated': {
    about: 'A user has another role, or a userRef',
    actions: ['user.role_changed', 'user.named'],
  },
  'user.disabled': { about: 'A user was disabled', actions: ['user.disabled'] },
  'user.enabled': { about: 'A user was enabled again', actions: ['user.enabled'] },
  'user.removed': { about: 'A user was removed', actions: ['user.removed'] },
  'portal_session.created': { about: 'A portal link was made', actions: ['user.portal_link_created'] },
  'portal_session.opened': { about: 'A portal link was used', actions: ['user.portal_session_opened'] },
  'portal_session.ended': {
    about: 'Portal sessions were ended before their time',
    actions: ['user.portal_session_ended', 'tenant.portal_sessions_ended'],
  },
  'alert.opened': { about: 'An alert was opened', actions: ['alert.opened'] },
  'alert.resolved': { about: 'An alert was resolved', actions: ['alert.resolved'] },
  'erasure.done': { about: 'Data was erased', actions: ['erasure.done'] },
};

export const OPERATION_EVENT_TYPES: readonly string[] = Object.keys(OPERATION_EVENTS);

const TYPES: ReadonlyMap<string, string> = new Map(
  Object.entries(OPERATION_EVENTS).flatMap(([type, { actions }]) =>
    actions.map((action) => [action, type] as const),
  ),
);

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
  'kind',
  'subject',
  'metric',
  'period',
  'threshold',
  'setupLinkId',
  'step',
  'code',
  'retryable',
  'userId',
  'userRef',
  'role',
  'portalSessionId',
  'ended',
];

export type OperationEvent = {
  id: string;
  type: string;
  occurredAt: Date;
  sequence: number;
  tenant: { userId: number; externalId: string | null } | null;
  wabaId: string | null;
  actor: string;
  data: Record<string, unknown>;
};

/** The first events of these types behind a place, and how far was looked. Throws RequestError `invalid_value`. */
export async function readOperationEvents(
  database: Database,
  { types, ...behind }: { types: readonly string[]; tenantId: string | null; after: string; limit: number },
): Promise<{ events: OperationEvent[]; position: string; hasMore: boolean }> {
  const actions = actionsOf(types);
  const { entries, ...place } = await readAuditFeed(database, { ...behind, actions });
  const owners = entries.flatMap(({ tenantId }) => tenantId ?? []);
  const names = await namesOfTenants(database, owners);
  return { events: entries.map((entry) => eventOf(entry, names)), ...place };
}

/** `*` is all, `tenant.*` all that begin with `tenant.`. Throws RequestError `invalid_value` where there are no such events. */
export function checkEventTypes(wanted: readonly string[]): void {
  const unknown = wanted.find((pattern) => !OPERATION_EVENT_TYPES.some((type) => isOne(pattern, type)));
  if (unknown !== undefined)
    throw invalidValue(`There are no events of the type ${shown(unknown)}.`, 'types');
}

function actionsOf(wanted: readonly string[]): string[] {
  checkEventTypes(wanted);
  return [...TYPES].flatMap(([action, type]) =>
    wanted.some((pattern) => isOne(pattern, type)) ? action : [],
  );
}

function isOne(pattern: string, type: string): boolean {
  return (
    pattern === '*' || pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1)))
  );
}

const OBJECT_ID = /^(?:(?<kind>API key|endpoint) )?(?<id>\d+|alr_\w+)$/;
const ID_NAMES: Readonly<Record<string, string>> = { 'API key': 'keyId', endpoint: 'endpointId' };

function eventOf(entry: ChainedEntry, names: ReadonlyMap<string, string | null>): OperationEvent {
  const { position, at, tenantId, wabaId, actorUserId, actor, action, target, detail } = entry;
  const { kind, id } = OBJECT_ID.exec(target)?.groups ?? {};
  const idName = kind === undefined ? 'alertId' : ID_NAMES[kind];
  const details = SHOWN_DETAILS.flatMap((name) => (detail[name] === undefined ? [] : [[name, detail[name]]]));
  return {
    id: `opn_${position}`,
    type: TYPES.get(action) ?? action,
    occurredAt: at,
    sequence: Number(position),
    tenant: tenantId === null ? null : { userId: Number(tenantId), externalId: names.get(tenantId) ?? null },
    wabaId,
    // The name of a user is an e-mail address.
    actor: actorUserId === null ? actor.replace(/^.*@.*$/, 'a user') : `user ${actorUserId}`,
    data: {
      ...Object.fromEntries(details),
      ...(id !== undefined && idName !== undefined && { [idName]: id }),
    },
  };
}
