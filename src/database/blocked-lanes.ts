import type { Database } from './database.ts';
import { recordProgress } from './deliveries.ts';
import { removeUnclaimed } from './delivery-queue.ts';
import { query } from './sql.ts';

export type GivenUp = { deliveryId: string; workflowId: string | null };

type Blocking = { deliveryId: string; deliveryDay: string; workflowId: string | null };

/**
 * Gives up deliveries that have been failing for longer than their endpoint lets one hold up others of its key
 * (`defaultSeconds` where it says nothing; 0 means for ever), and lets the next go. Returns them, at most `limit`.
 * Time before the endpoint was (again) taking deliveries does not count, and an attempt that is due is made first.
 */
export async function giveUpBlocking(
  database: Database,
  options: { defaultSeconds: number; limit: number },
): Promise<GivenUp[]> {
  const blocking = await query<Blocking>(
    database,
    `select q.delivery_id as "deliveryId", q.delivery_day as "deliveryDay", d.workflow_id as "workflowId"
       from delivery_queue q
       join webhook_endpoints w on w.id = q.endpoint_id and w.mode = 'open'
        and coalesce(w.block_limit_seconds, nullif(cast(:defaultSeconds as integer), 0)) is not null
       left join deliveries d on d.day = q.delivery_day and d.id = q.delivery_id
      where q.state = 'retrying' and q.attempts > 0
        and (q.next_attempt_at > clock_timestamp() or q.awaits_workflow)
        and greatest(q.first_failed_at, w.mode_changed_at) < clock_timestamp()
            - coalesce(w.block_limit_seconds, cast(:defaultSeconds as integer)) * interval '1 second'
        and exists (select 1 from delivery_queue b
                     where b.endpoint_id = q.endpoint_id and b.lane = q.lane and b.state = 'queued')
      limit cast(:limit as integer)`,
    options,
  );
  const given = await Promise.all(blocking.map((delivery) => giveUp(database, delivery)));
  return given.flatMap((one) => (one === null ? [] : [one]));
}

async function giveUp(database: Database, { deliveryId, deliveryDay, workflowId }: Blocking) {
  return await database.transaction(async (trx) => {
    const removed = await removeUnclaimed(trx, deliveryId);
    if (removed.kind !== 'removed') return null;
    const error = 'given up: it held up others of its key for longer than the endpoint allows';
    await recordProgress(trx, [
      { deliveryDay, deliveryId, state: 'failed', attempts: removed.attempts, error, ...NOTHING_ELSE },
    ]);
    return { deliveryId, workflowId };
  });
}

const NOTHING_ELSE = { statusCode: null, nextDelayMs: null, workflowId: null };
