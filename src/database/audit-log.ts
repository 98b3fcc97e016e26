import type { Database } from './database.ts';
import { execute, query } from './sql.ts';

/** One change, as it is written down. Nothing in it is secret. */
export type AuditEntry = {
  /** The tenant that it concerns; null: found by the WABA, or it concerns none. */
  tenantId: string | null;
  wabaId: string | null;
  /** Who: an e-mail address, "api key …", "operator command" or "system". */
  actor: string;
  /** What, such as `endpoint.paused`. */
  action: string;
  /** To what, such as `endpoint 7`. */
  target: string;
  detail: Record<string, string | number | boolean | null>;
  requestId: string | null;
  ip: string | null;
};

export type StoredAuditEntry = AuditEntry & { id: string; at: Date };

/**
 * Whose entries. Of a tenant and a WABA: those of the WABA, and those of the tenant as a whole, such as its users. Both
 * null: everybody's, for operators.
 */
export type AuditOwner = { tenantId: string | null; wabaId: string | null };

/** Appends an entry; the table takes no changes and no deletions. */
export async function insertAuditEntry(database: Database, entry: AuditEntry): Promise<void> {
  await execute(
    database,
    `insert into audit_log (tenant_id, waba_id, actor, action, target, detail, request_id, ip)
     values (coalesce(cast(:tenantId as bigint), (select tenant_id from wabas where waba_id = :wabaId)),
             :wabaId, :actor, :action, :target, cast(:detail as jsonb), :requestId, :ip)`,
    { ...entry, detail: JSON.stringify(entry.detail) },
  );
}

const CONDITIONS = {
  tenantId: 'tenant_id = cast(:tenantId as bigint)',
  wabaId: 'waba_id = :wabaId',
  action: 'action = :action',
  actor: 'actor = :actor',
  beforeId: 'id < cast(:beforeId as bigint)',
};

const OF_TENANT_OR_WABA = '(waba_id is null or waba_id = :wabaId)';

/** The newest entries, or those before one. */
export async function listAuditEntries(
  database: Database,
  owner: AuditOwner,
  page: { action: string | null; actor: string | null; beforeId: string | null; limit: number },
): Promise<StoredAuditEntry[]> {
  const values = { ...owner, action: page.action, actor: page.actor, beforeId: page.beforeId };
  const given = Object.entries(values).filter(([, value]) => value !== null);
  // Only the conditions that are asked for: each of these texts has its own plan, on its own index.
  const conditions = given.map(([name]) =>
    name === 'wabaId' && owner.tenantId !== null
      ? OF_TENANT_OR_WABA
      : CONDITIONS[name as keyof typeof CONDITIONS],
  );
  return await query<StoredAuditEntry>(
    database,
    `select id, at, tenant_id as "tenantId", waba_id as "wabaId", actor, action, target, detail,
            request_id as "requestId", ip
       from audit_log ${conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`}
      order by id desc limit :limit`,
    { ...Object.fromEntries(given), limit: page.limit },
  );
}
