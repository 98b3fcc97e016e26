import type { AuditEntry } from '../database/audit-log.ts';
import type { Database } from '../database/database.ts';
import { type Actor, recordBy } from './audit.ts';

/** Writes down a change that concerns a person. */
export async function recordUserChange(
  database: Database,
  actor: Actor,
  change: { tenantId: string | null; action: string; email: string; detail?: AuditEntry['detail'] },
): Promise<void> {
  const { tenantId, action, email, detail = {} } = change;
  await recordBy(database, actor, { tenantId, wabaId: null, action, target: `user ${email}`, detail });
}
