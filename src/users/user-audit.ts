import { type Actor, recordBy } from '../platform/audit/audit.ts';
import type { AuditEntry } from '../platform/audit/audit-log.ts';
import type { Database } from '../platform/postgres/database.ts';

/** Writes down a change that concerns a person. */
export async function recordUserChange(
  database: Database,
  actor: Actor,
  change: { tenantId: string | null; action: string; email: string; detail?: AuditEntry['detail'] },
): Promise<void> {
  const { tenantId, action, email, detail = {} } = change;
  await recordBy(database, actor, { tenantId, wabaId: null, action, target: `user ${email}`, detail });
}
