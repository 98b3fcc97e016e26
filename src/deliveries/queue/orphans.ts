import type { Database } from '../../database/database.ts';
import { query } from '../../database/sql.ts';
import { dropHeads } from './settle.ts';

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

/** An endpoint that is gone, of which something is still in the queue. */
export type GoneEndpoint = { endpointId: string; wabaId: string };

/** Up to `limit` endpoints whose removal was cut off before the queue was empty: one look into the index per endpoint. */
export async function listGoneEndpoints(database: Database, limit: number): Promise<GoneEndpoint[]> {
  return await query<GoneEndpoint>(
    database,
    `with recursive used as (
       (select endpoint_id as id from delivery_queue where state <> 'queued' order by endpoint_id limit 1)
       union all
       select (select endpoint_id from delivery_queue where state <> 'queued' and endpoint_id > used.id
                order by endpoint_id limit 1)
         from used where used.id is not null
     )
     select used.id as "endpointId",
            coalesce((select d.waba_id from delivery_queue q
                        join deliveries d on d.day = q.delivery_day and d.id = q.delivery_id
                       where q.endpoint_id = used.id and q.state <> 'queued' limit 1), '') as "wabaId"
       from used
      where used.id is not null and not exists (select from webhook_endpoints e where e.id = used.id)
      limit ?`,
    [limit],
  );
}
