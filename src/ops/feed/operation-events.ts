import { namesOfTenants } from '../../features/accounts/external-tenants.ts';
import { type ChainedEntry, readAuditFeed } from '../../platform/audit/audit-feed.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { invalidValue, shown } from '../../platform/request-input.ts';

/** The entries of the audit log that are events, by their action; all others stay in the log. */
const TYPES: Readonly<Record<string, string>> = {
  'tenant.created': 'tenant.created',
  'tenant.renamed': 'tenant.updated',
  'tenant.external_id_set': 'tenant.updated',
  'tenant.metadata_set': 'tenant.updated',
  'tenant.policy_changed': 'tenant.updated',
  'tenant.usage_alert_set': 'tenant.updated',
  'tenant.suspended': 'tenant.suspended',
  'tenant.resumed': 'tenant.resumed',
  'tenant.removed': 'tenant.removed',
  'waba.saved': 'waba.saved',
  'waba.access_token_set': 'waba.saved',
  'waba.removed': 'waba.removed',
  'waba.numbers_followed': 'waba.numbers_changed',
  'waba.number_removed': 'waba.numbers_changed',
  'number.connected': 'number.connected',
  'setup_link.done': 'setup_link.done',
  'setup_link.failed': 'setup_link.failed',
  'setup_link.expired': 'setup_link.expired',
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
  'alert.opened': 'alert.opened',
  'alert.resolved': 'alert.resolved',
  'erasure.done': 'erasure.done',
};

export const OPERATION_EVENT_TYPES = [...new Set(Object.values(TYPES))];

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
  return Object.keys(TYPES).filter((action) => wanted.some((pattern) => isOne(pattern, TYPES[action] ?? '')));
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
    type: TYPES[action] ?? action,
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
