import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** Broadcasts that paused themselves, and wait for a decision. */
export async function listPausedBroadcasts(
  database: Database,
  limit: number,
): Promise<{ id: string; wabaId: string; tenantId: string; name: string; reason: string }[]> {
  return await query(
    database,
    `select b.id, b.waba_id as "wabaId", w.tenant_id as "tenantId", b.name, b.paused_because as reason
       from broadcasts b join wabas w on w.waba_id = b.waba_id and w.removed_at is null
      where b.paused_because is not null and b.state = 'paused' order by b.id limit :limit`,
    { limit },
  );
}
