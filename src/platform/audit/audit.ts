import type { Database } from '../postgres/database.ts';
import { execute, query, queryColumn, queryValue } from '../postgres/sql.ts';
import { checkRowId, invalidValue } from '../request-input.ts';

/** Who makes a change, as the audit log names them, and by which request. */
export type Actor = {
  /** An e-mail address, "api key …", "operator command" or "system". */
  name: string;
  /** The user of the portal, as several accounts may have one address. */
  userId?: string;
  isOperator?: boolean;
  /** Who made the link by which the password of the actor's session was set: it may be another person who acts. */
  passwordLinkBy?: string | null;
  apiKey?: { id: string; mayReadEvents: boolean };
  /** The operator's program, which reads no events. */
  isPlatformKey?: boolean;
  requestId: string | null;
  ip: string | null;
};

export type Audited = { actor: Actor };

export const OPERATOR_COMMAND: Actor = { name: 'operator command', requestId: null, ip: null };

/** What happens by itself: time runs out, a breaker opens. */
export const SYSTEM: Actor = { name: 'system', requestId: null, ip: null };

const MAX_LISTED = 100;
const MAX_TEXT_CHARS = 500;
const FILTER = /^[^\p{Cc}\p{Cs}]{1,320}$/u;

/**
 * Writes down a change, in the transaction that makes it where there is one. A tenant is found by its WABA. What
 * cannot be stored (U+0000, lone surrogates) is replaced and long text is cut, so that an entry never undoes a change.
 */
export async function recordAudit(database: Database, entry: AuditEntry): Promise<void> {
  const detail = Object.entries(entry.detail).map(([name, value]) => [
    name,
    typeof value === 'string' ? storable(value) : value,
  ]);
  await insertAuditEntry(database, {
    ...entry,
    actor: storable(entry.actor),
    target: storable(entry.target),
    detail: Object.fromEntries(detail),
  });
}

export async function recordBy(
  database: Database,
  { name, userId, isOperator = false, passwordLinkBy, requestId, ip }: Actor,
  change: Pick<AuditEntry, 'tenantId' | 'wabaId' | 'action' | 'target' | 'detail'>,
): Promise<void> {
  const detail = { ...change.detail, ...(passwordLinkBy && { passwordLinkBy }) };
  const by = { actor: name, actorUserId: userId ?? null, byOperator: isOperator, requestId, ip };
  await recordAudit(database, { ...change, ...by, detail });
}

export async function recordChange(
  database: Database,
  actor: Actor,
  change: Pick<AuditEntry, 'action' | 'target'> & { wabaId: string; detail?: AuditEntry['detail'] },
): Promise<void> {
  await recordBy(database, actor, { detail: {}, ...change, tenantId: null });
}

const REDACTED_AT_ONCE = 500;

/** Takes ids of events, which hold phone numbers, out of entries of a WABA; returns how many it changed. The chain notes it. */
export async function redactAudit(database: Database, wabaId: string): Promise<number> {
  const redacting = `select redact_audit_entries(:wabaId, ${REDACTED_AT_ONCE})`;
  return (await queryValue<number>(database, redacting, { wabaId })) ?? 0;
}

/**
 * As `redactAudit`, for all WABAs: for customers who were erased by a version that left such ids. Later versions write none,
 * so this finds something once.
 */
export async function redactAuditOfAll(database: Database, ending: AbortSignal): Promise<void> {
  while (!ending.aborted) {
    const wabaId = await queryValue<string>(
      database,
      `select a.waba_id from audit_log a
        where a.action = 'delivery.dropped' and a.detail -> 'eventId' is not null and a.waba_id is not null
          and exists (select from audit_chain c where c.entry_id = a.id) limit 1`,
    );
    if (wabaId === null || (await redactAudit(database, wabaId)) === 0) return;
  }
}

/** How far back is looked for the same read: an operator who reads more than that has a second entry, which harms none. */
const RECENT_ENTRIES = 500;

/** As `recordChange`, for reading; once for each actor, target and hour. */
export async function recordReads(
  database: Database,
  actor: Actor,
  action: string,
  reads: readonly { wabaId: string; target: string }[],
): Promise<void> {
  const known = await queryColumn<string>(
    database,
    `select distinct target from (select action, target, at from audit_log where actor = :actor order by id desc
                                   limit ${RECENT_ENTRIES}) as e
      where action = :action and target = any (cast(:targets as text[])) and at >= date_trunc('hour', now())`,
    { actor: storable(actor.name), action, targets: reads.map(({ target }) => target) },
  );
  for (const read of reads)
    if (!known.includes(read.target)) await recordChange(database, actor, { ...read, action });
}

/**
 * The newest entries of a tenant, of a WABA, of a WABA and its tenant as a whole, or of all (`{}`), or those before one;
 * `action` and `actor` narrow them down. `ofWabaOnly`: without those of the tenant as a whole. Throws RequestError `invalid_value`.
 */
export async function listAudit(
  { database }: { database: Database },
  owner: Partial<AuditOwner>,
  filter: AuditFilter = {},
): Promise<StoredAuditEntry[]> {
  const { beforeId = null, limit = MAX_LISTED, ofWabaOnly = false } = filter;
  return await listAuditEntries(
    database,
    { tenantId: owner.tenantId ?? null, wabaId: owner.wabaId ?? null },
    {
      action: checkFilter('action', filter.action),
      actor: checkFilter('actor', filter.actor),
      beforeId: beforeId === null ? null : checkRowId('The id of an entry', beforeId),
      limit: Math.min(limit, MAX_LISTED + 1),
      ofWabaOnly,
    },
  );
}

type AuditFilter = {
  action?: string | null;
  actor?: string | null;
  beforeId?: string | null;
  limit?: number;
  ofWabaOnly?: boolean;
};

function checkFilter(name: string, text: string | null | undefined): string | null {
  if (text === undefined || text === null || text === '') return null;
  if (FILTER.test(text)) return text;
  throw invalidValue(`The ${name} must be one line of up to 320 characters.`, name);
}

function storable(text: string): string {
  const kept = text.toWellFormed().replaceAll('\u0000', '\uFFFD');
  return kept.length > MAX_TEXT_CHARS ? `${kept.slice(0, MAX_TEXT_CHARS - 1).toWellFormed()}…` : kept;
}

/** One change, as it is written down. Nothing in it is secret. */
export type AuditEntry = {
  /** The tenant that it concerns; null: found by the WABA, or it concerns none. */
  tenantId: string | null;
  wabaId: string | null;
  actor: string;
  actorUserId?: string | null;
  /** Where operators work from is not for tenants. */
  byOperator?: boolean;
  /** What, such as `endpoint.paused`. */
  action: string;
  target: string;
  detail: Record<string, string | number | boolean | null>;
  requestId: string | null;
  ip: string | null;
};

export type StoredAuditEntry = Omit<AuditEntry, 'actorUserId' | 'byOperator'> & {
  id: string;
  at: Date;
  actorUserId: string | null;
};

/**
 * Whose entries. Of a tenant and a WABA: those of the WABA, and those of the tenant as a whole, such as its users. Both
 * null: everybody's, for operators.
 */
type AuditOwner = { tenantId: string | null; wabaId: string | null };

/** Appends an entry; the table takes no changes and no deletions. */
async function insertAuditEntry(database: Database, entry: AuditEntry): Promise<void> {
  await execute(
    database,
    `insert into audit_log (tenant_id, waba_id, actor, actor_user_id, by_operator, action, target, detail, request_id,
                            ip)
     values (coalesce(cast(:tenantId as bigint), (select tenant_id from wabas where waba_id = :wabaId)),
             :wabaId, :actor, :actorUserId, :byOperator, :action, :target, cast(:detail as jsonb), :requestId, :ip)`,
    { actorUserId: null, byOperator: false, ...entry, detail: JSON.stringify(entry.detail) },
  );
}

/** A key set where flows send what customers enter, or the key that encrypts it: the entries lead to alerts. */
export const DESTINATION_SET = 'graph.destination_set';

export type LatestChange = Pick<StoredAuditEntry, 'actor' | 'target' | 'detail' | 'at'> & {
  wabaId: string;
  tenantId: string;
};

/** The last change of each target by an action that is rare, of WABAs that are still here. */
export async function listLatestChanges(
  database: Database,
  action: string,
  { days, limit }: { days: number; limit: number },
): Promise<LatestChange[]> {
  return await query<LatestChange>(
    database,
    `select distinct on (w.waba_id, a.target) w.waba_id as "wabaId", w.tenant_id as "tenantId", a.actor, a.target, a.detail, a.at
       from (select * from audit_log where action = :action order by id desc limit :limit) a
       join wabas w on w.waba_id = a.waba_id
      where a.at > now() - interval '1 day' * :days
      order by w.waba_id, a.target, a.id desc`,
    { action, days, limit },
  );
}

const CONDITIONS = {
  tenantId: 'tenant_id = cast(:tenantId as bigint)',
  wabaId: 'waba_id = :wabaId',
  action: 'action = :action',
  actor: 'actor = :actor',
  beforeId: 'id < cast(:beforeId as bigint)',
};

const ENTRY = `id, at, tenant_id as "tenantId", waba_id as "wabaId", actor, actor_user_id as "actorUserId", action, target, detail,
  request_id as "requestId"`;

const IP_FOR_TENANTS = 'case when not by_operator then ip end as ip';

async function listAuditEntries(
  database: Database,
  owner: AuditOwner,
  page: {
    action: string | null;
    actor: string | null;
    beforeId: string | null;
    limit: number;
    ofWabaOnly: boolean;
  },
): Promise<StoredAuditEntry[]> {
  const values = { ...owner, action: page.action, actor: page.actor, beforeId: page.beforeId };
  const given = Object.entries(values).filter(([, value]) => value !== null);
  // Only the conditions that are asked for: each of these texts has its own plan, on its own index.
  const conditions = given.map(([name]) => CONDITIONS[name as keyof typeof CONDITIONS]);
  const isOperators = owner.tenantId === null && owner.wabaId === null;
  const isOfBoth = owner.tenantId !== null && owner.wabaId !== null && !page.ofWabaOnly;
  return await query<StoredAuditEntry>(
    database,
    `select ${ENTRY}, ${isOperators ? 'ip' : IP_FOR_TENANTS}
       from ${isOfBoth ? ofTenantAndWaba(conditions) : newest(conditions)} as e
      order by id desc limit :limit`,
    { ...Object.fromEntries(given), limit: page.limit },
  );
}

/** The newest entries of some actors, before one, of a tenant or of all. */
export async function listAuditOf(
  database: Database,
  actors: readonly string[],
  { tenantId, beforeId, limit }: { tenantId: string | null; beforeId: string | null; limit: number },
): Promise<StoredAuditEntry[]> {
  const given = { ...(tenantId !== null && { tenantId }), ...(beforeId !== null && { beforeId }) };
  const names = Object.keys(given) as (keyof typeof given)[];
  const own = newest(['actor = a.name', ...names.map((name) => CONDITIONS[name])]);
  return await query<StoredAuditEntry>(
    database,
    `select ${ENTRY}, ip from unnest(cast(:actors as text[])) as a (name), lateral ${own} as e order by id desc limit :limit`,
    { ...given, actors, limit },
  );
}

function newest(conditions: readonly string[]): string {
  const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`;
  return `(select * from audit_log ${where} order by id desc limit :limit)`;
}

/** Two walks of one index each: a busy WABA beside this one is not walked through. */
function ofTenantAndWaba(conditions: readonly string[]): string {
  const ofTenant = conditions.map((one) => (one === CONDITIONS.wabaId ? 'waba_id is null' : one));
  return `(${newest(conditions)} union all ${newest(ofTenant)})`;
}
