import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

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
