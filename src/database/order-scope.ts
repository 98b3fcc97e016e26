import type { Database } from './database.ts';
import { stopPublishing } from './locks.ts';
import { execute, query } from './sql.ts';

/** How often, and after how long, the queue of an endpoint is looked at again while nobody publishes. */
const LOOKS = 10;
const LOOK_MS = 20;

/** Endpoints for which another order scope was asked. */
export async function findWantedScopes(database: Database): Promise<string[]> {
  const rows = await query<{ id: string }>(
    database,
    'select id from webhook_endpoints where wanted_order_scope is not null order by id',
  );
  return rows.map((row) => row.id);
}

/**
 * Gives an endpoint the order scope that was asked for, if nothing of the present one is open: two scopes side by side
 * would let events overtake each other. Publishing stands still meanwhile, for 0.2 seconds at most.
 */
export async function applyWantedScope(database: Database, endpointId: string): Promise<boolean> {
  if (await hasOpen(database, endpointId)) {
    const [row] = await query(
      database,
      `select 1 from delivery_queue where endpoint_id = ? and state in ('retrying', 'held') limit 1`,
      [endpointId],
    );
    // What waits for a retry will not be gone in a moment.
    if (row !== undefined) return false;
  }
  return await database.transaction(async (trx) => {
    await stopPublishing(trx);
    for (let look = 0; look < LOOKS; look += 1) {
      if (!(await hasOpen(trx, endpointId))) {
        await execute(
          trx,
          `update webhook_endpoints
              set order_scope = wanted_order_scope, wanted_order_scope = null, version = version + 1, updated_at = now()
            where id = ? and wanted_order_scope is not null`,
          [endpointId],
        );
        return true;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    return false;
  });
}

/** Replays have lanes of their own whatever the scope, and the test event too. */
async function hasOpen(database: Database, endpointId: string): Promise<boolean> {
  const rows = await query(
    database,
    'select 1 from delivery_queue where endpoint_id = ? and not replay limit 1',
    [endpointId],
  );
  return rows.length > 0;
}
