import type { Database } from '../postgres/database.ts';
import { execute, query } from '../postgres/sql.ts';

/** One change, as it is written down. Nothing in it is secret. */
export type AuditEntry = {
  /** The tenant that it concerns; null: found by the WABA, or it concerns none. */
  tenantId: string | null;
  wabaId: string | null;
  /** Who: an e-mail address, "api key …", "operator command" or "system". */
  actor: string;
  /** The user of the portal, as several accounts may have one address; null: none. */
  actorUserId?: string | null;
  /** Where operators work from is not for tenants. */
  byOperator?: boolean;
  /** What, such as `endpoint.paused`. */
  action: string;
  /** To what, such as `endpoint 7`. */
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
export type AuditOwner = { tenantId: string | null; wabaId: string | null };

/** Appends an entry; the table takes no changes and no deletions. */
export async function insertAuditEntry(database: Database, entry: AuditEntry): Promise<void> {
  await execute(
    database,
    `insert into audit_log (tenant_id, waba_id, actor, actor_user_id, by_operator, action, target, detail, request_id,
                            ip)
     values (coalesce(cast(:tenantId as bigint), (select tenant_id from wabas where waba_id = :wabaId)),
             :wabaId, :actor, :actorUserId, :byOperator, :action, :target, cast(:detail as jsonb), :requestId, :ip)`,
    { actorUserId: null, byOperator: false, ...entry, detail: JSON.stringify(entry.detail) },
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

/** The newest entries, or those before one. */
export async function listAuditEntries(
  database: Database,
  owner: AuditOwner,
  page: { action: string | null; actor: string | null; beforeId: string | null; limit: number },
): Promise<StoredAuditEntry[]> {
  const values = { ...owner, action: page.action, actor: page.actor, beforeId: page.beforeId };
  const given = Object.entries(values).filter(([, value]) => value !== null);
  // Only the conditions that are asked for: each of these texts has its own plan, on its own index.
  const conditions = given.map(([name]) => CONDITIONS[name as keyof typeof CONDITIONS]);
  const isOperators = owner.tenantId === null && owner.wabaId === null;
  return await query<StoredAuditEntry>(
    database,
    `select ${ENTRY}, ${isOperators ? 'ip' : IP_FOR_TENANTS}
       from ${owner.tenantId !== null && owner.wabaId !== null ? ofTenantAndWaba(conditions) : newest(conditions)} as e
      order by id desc limit :limit`,
    { ...Object.fromEntries(given), limit: page.limit },
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
