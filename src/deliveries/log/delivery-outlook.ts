import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7 } from '../../platform/public-ids.ts';

/** Who carries a delivery and what comes next for it. */
export type DeliveryOutlook = {
  id: string;
  state: 'pending' | 'delivered' | 'failed' | 'dropped';
  attempts: number;
  workflowId: string | null;
  /** Of a delivery that waits between two attempts. */
  nextAttemptAt: Date | null;
};

/** These deliveries of a WABA, by id; unknown ones are absent. */
export async function findDeliveryOutlooks(
  database: Database,
  wabaId: string,
  deliveryIds: readonly string[],
): Promise<Map<string, DeliveryOutlook>> {
  if (deliveryIds.length === 0) return new Map();
  const days = [...new Set(deliveryIds.map(dayOfUuidV7))];
  const rows = await query<DeliveryOutlook>(
    database,
    `select d.id, d.state, d.attempts, d.workflow_id as "workflowId",
            case when q.state = 'retrying' then q.next_attempt_at end as "nextAttemptAt"
       from deliveries d left join delivery_queue q on q.delivery_id = d.id
      where d.day = any (cast(:days as date[])) and d.id = any (cast(:ids as uuid[])) and d.waba_id = :wabaId`,
    { days, ids: deliveryIds, wabaId },
  );
  return new Map(rows.map((row) => [row.id, row]));
}
