import type { Database } from './database.ts';
import { dropHeads } from './delivery-settlement.ts';
import { query } from './sql.ts';

/**
 * Takes those of these deliveries out of the queue whose event or endpoint no longer exists, and lets the next of
 * their lanes go: nothing could ever be sent. What an attempt holds is left to it. Returns the ids of those taken out.
 * Heads are locked in the order in which publishers lock them, so the two cannot deadlock.
 */
export async function dropUnsendable(
  database: Database,
  deliveryIds: readonly string[],
): Promise<readonly string[]> {
  return await database.transaction(async (trx) => {
    const rows = await query<{ id: string }>(
      trx,
      `select q.delivery_id as id from delivery_queue q
        where q.delivery_id = any (?::uuid[])
          and (q.state = 'retrying' or (q.state = 'claimed' and q.lease_until < clock_timestamp()))
          and not exists (select 1 from events ev join webhook_endpoints e on e.id = q.endpoint_id
                           where ev.day = q.event_day and ev.id = q.event_uuid)
        order by q.endpoint_id, q.lane for update of q`,
      [deliveryIds],
    );
    const ids = rows.map(({ id }) => id);
    await dropHeads(trx, ids);
    return ids;
  });
}
