import type { Database } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';
import { lockClosed, lockReopened, markParked, unmarkParked } from '../endpoint/parking-marks.ts';

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
    const closed = await lockClosed(trx, options);
    if (closed.length === 0) return { parked: 0, closed };
    await markParked(trx, closed);
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

/** Lets walks see the parked heads of endpoints that take deliveries again, `limit` of each. Returns how many. */
export async function unparkHeads(database: Database, limit: number): Promise<number> {
  return await database.transaction(async (trx) => {
    const open = await lockReopened(trx);
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
    await unmarkParked(trx, open);
    return unparked;
  });
}
