import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, queryColumn } from '../../platform/postgres/sql.ts';

/**
 * Parks due heads of those of these endpoints that have not been open for `closedSeconds`: walks for something to claim pass over
 * them, and probes do not. Returns how many, `limit` at most, and which endpoints these are.
 */
export async function parkHeads(
  database: Database,
  options: { endpointIds: readonly string[]; closedSeconds: number; limit: number },
): Promise<{ parked: number; closed: string[] }> {
  if (options.endpointIds.length === 0) return { parked: 0, closed: [] };
  return await database.transaction(async (trx) => {
    const closed = await lockEndpoints(
      trx,
      `id = any (cast(:endpointIds as bigint[])) and mode <> 'open'
         and mode_changed_at < now() - cast(:closedSeconds as float8) * interval '1 second'`,
      options,
    );
    if (closed.length === 0) return { parked: 0, closed };
    await execute(
      trx,
      'update webhook_endpoints set has_parked = true where id = any (cast(:closed as bigint[])) and not has_parked',
      { closed },
    );
    const parked = await execute(
      trx,
      `update delivery_queue set parked = true
        where position = any (array(
          select due.position from unnest(cast(:closed as bigint[])) as e (id)
           cross join lateral (
             select position from delivery_queue
              where state = 'due' and not parked and endpoint_id = e.id
              order by endpoint_id, replay, position limit :limit for update skip locked) as due
           limit :limit))`,
      { closed, limit: options.limit },
    );
    return { parked, closed };
  });
}

const ENDPOINTS_AT_ONCE = 100;

/** Lets walks see the parked heads of endpoints that take deliveries again, `limit` of each. Returns how many. */
export async function unparkHeads(database: Database, limit: number): Promise<number> {
  return await database.transaction(async (trx) => {
    const open = await lockEndpoints(trx, `has_parked and mode = 'open'`, {});
    if (open.length === 0) return 0;
    const unparked = await execute(
      trx,
      `update delivery_queue set parked = false
        where position = any (array(
          select p.position from unnest(cast(:open as bigint[])) as e (id)
           cross join lateral (
             select position from delivery_queue where parked and endpoint_id = e.id
              limit :limit for update skip locked) as p))`,
      { open, limit },
    );
    await execute(
      trx,
      `update webhook_endpoints w set has_parked = false
        where id = any (cast(:open as bigint[]))
          and not exists (select 1 from delivery_queue q where q.parked and q.endpoint_id = w.id)`,
      { open },
    );
    return unparked;
  });
}

/** Until the transaction ends, the modes of these endpoints stay, and no other process parks their heads or lets them return. */
async function lockEndpoints(
  trx: Transaction,
  condition: string,
  bindings: Record<string, number | readonly string[]>,
): Promise<string[]> {
  return await queryColumn<string>(
    trx,
    `select id from webhook_endpoints where ${condition}
      order by id limit ${ENDPOINTS_AT_ONCE} for no key update skip locked`,
    bindings,
  );
}
