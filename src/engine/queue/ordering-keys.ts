import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, queryValue } from '../../platform/postgres/sql.ts';

/** Erases the numbers of ordering keys; returns how many there were. */
export async function eraseOrderingKeys(
  trx: Transaction,
  wabaId: string,
  keys: readonly string[],
): Promise<number> {
  return await execute(
    trx,
    'delete from ordering_keys where waba_id = :wabaId and key = any (cast(:keys as text[]))',
    { wabaId, keys: [...new Set(keys)] },
  );
}

/**
 * Forgets up to `limit` ordering keys that had no event for `keepDays` days, to the month; returns how many it has looked
 * at. A key stays while a delivery of its time is open, which is looked at again after a month: numbers of a key may not
 * begin at 1 before those that were drawn are out. Where an endpoint has wider lanes, all keys of its WABA stay meanwhile.
 */
export async function forgetOldOrderingKeys(
  database: Database,
  keepDays: number,
  limit: number,
): Promise<number> {
  const month = (days: number) =>
    `cast(date_trunc('month', now() at time zone 'utc' - ${Math.trunc(days)} * interval '1 day') as date)`;
  const seen = await queryValue<number>(
    database,
    `with old as materialized (
       select ctid, waba_id, key from ordering_keys where used_month < ${month(keepDays)} limit :limit
     ), held as materialized (
       select waba_id from (select distinct waba_id from old) as o
        where exists (select from webhook_endpoints e join delivery_queue q on q.endpoint_id = e.id
                       where e.waba_id = o.waba_id and e.order_scope <> 'event' and q.state <> 'queued'
                         and not q.replay and q.created_at < ${month(keepDays)})
     ), needed as materialized (
       select o.ctid from old o
        where o.waba_id in (select waba_id from held)
           or exists (select from webhook_endpoints e join delivery_queue q on q.endpoint_id = e.id
                       where e.waba_id = o.waba_id and q.lane = o.key and q.state <> 'queued')
     ), kept as (
       update ordering_keys set used_month = ${month(0)} where ctid = any (array(select ctid from needed))
     ), gone as (
       delete from ordering_keys
        where ctid = any (array(select ctid from old except select ctid from needed))
          and used_month < ${month(keepDays)}
     )
     select count(*)::integer from old`,
    { limit },
  );
  return seen ?? 0;
}
