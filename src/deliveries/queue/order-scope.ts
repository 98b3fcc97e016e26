import type { Database } from '../../database/database.ts';
import type { EndpointMode } from '../../database/endpoint-settings.ts';
import { stopPublishing, tryOrderScopeLock } from '../../database/locks.ts';
import { execute, query } from '../../database/sql.ts';

/** How often, and after how long, the queue of an endpoint is looked at again: for 0.2 seconds. */
const LOOKS = 10;
const LOOK_MS = 20;

/** More than this does not leave within these looks. */
const FEW = 100;

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
 * would let events overtake each other. A steady stream leaves no such moment, so publishing stands still meanwhile, for
 * 0.2 seconds at most. That is every tenant's publishing, so it is stopped only if it helps: what was open a moment ago
 * must have gone within as long without it.
 */
export async function applyWantedScope(database: Database, endpointId: string): Promise<boolean> {
  const queue = await lookAtQueue(database, endpointId);
  if (queue === undefined || !(await goesSoon(database, endpointId, queue))) return false;
  return await database.transaction(async (trx) => {
    if (!(await tryOrderScopeLock(trx))) return false;
    await stopPublishing(trx);
    // At an endpoint that takes nothing, what came since the first look stays.
    const looks = queue.mode === 'open' ? LOOKS : 1;
    if (!(await isGone(trx, endpointId, looks))) return false;
    await execute(
      trx,
      `update webhook_endpoints
          set order_scope = wanted_order_scope, wanted_order_scope = null, version = version + 1, updated_at = now()
        where id = ? and wanted_order_scope is not null`,
      [endpointId],
    );
    return true;
  });
}

type OpenQueue = { mode: EndpointMode; open: number; isStuck: boolean; last: string | null };

/**
 * What of an endpoint is open, counted a little further than to the few. Stuck is what waits for its body or a retry.
 * Replays have lanes of their own whatever the scope, and so have the test event and what stepped aside.
 */
async function lookAtQueue(database: Database, endpointId: string): Promise<OpenQueue | undefined> {
  const [row] = await query<OpenQueue>(
    database,
    `select w.mode, cast(count(o.position) as integer) as open, max(o.position) as last,
            coalesce(bool_or(o.stuck), false) as "isStuck"
       from webhook_endpoints w
       left join lateral (
         (select position, state = 'unreleased' or (state = 'retrying' and attempts > 0) as stuck from delivery_queue
           where endpoint_id = w.id and state <> 'queued' and not replay and stepped_aside_at is null limit :most)
         union all
         (select position, false from delivery_queue
           where endpoint_id = w.id and state = 'queued' and not replay limit :most)) o on true
      where w.id = :endpointId group by w.id`,
    { endpointId, most: FEW + 1 },
  );
  return row;
}

async function goesSoon(database: Database, endpointId: string, queue: OpenQueue): Promise<boolean> {
  if (queue.open === 0) return true;
  if (queue.mode !== 'open' || queue.isStuck || queue.open > FEW) return false;
  return await isGone(database, endpointId, LOOKS, queue.last);
}

/** Whether nothing up to this position is open by the last look. Nothing is queued where no head is. */
async function isGone(database: Database, endpointId: string, looks: number, upTo: string | null = null) {
  for (let look = 1; ; look += 1) {
    const heads = await query(
      database,
      `select 1 from delivery_queue
        where endpoint_id = :endpointId and state <> 'queued' and not replay and stepped_aside_at is null
          and (cast(:upTo as bigint) is null or position <= cast(:upTo as bigint)) limit 1`,
      { endpointId, upTo },
    );
    if (heads.length === 0) return true;
    if (look >= looks) return false;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
