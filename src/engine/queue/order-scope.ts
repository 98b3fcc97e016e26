import type { Database } from '../../platform/postgres/database.ts';
import { queryColumn, queryValue } from '../../platform/postgres/sql.ts';
import { ORDER_SCOPE_LOCK } from './publishing-locks.ts';

/** At an endpoint that takes nothing at present, so many waiting deliveries can be moved to other lanes at once. */
const MOST_MOVED = 1_000;

/** An endpoint with a steady stream has nothing open for moments only. */
const LOOKS = 10;
const LOOK_MS = 20;

/**
 * Gives an endpoint the order scope that was asked for, if it can be done at this moment (see the function
 * apply_order_scope); it never waits. Otherwise it stays wanted.
 */
export async function applyOrderScope(database: Database, endpointId: string): Promise<boolean> {
  const applied = await queryValue<boolean>(
    database,
    'select apply_order_scope(cast(:endpointId as bigint), :orderScopeLock, :mostMoved)',
    { endpointId, orderScopeLock: ORDER_SCOPE_LOCK, mostMoved: MOST_MOVED },
  );
  return applied === true;
}

/** Tries it for every endpoint for which another order scope was asked, for a fifth of a second. */
export async function applyWantedScopes(database: Database): Promise<void> {
  let wanted = await findWantedScopes(database);
  for (let look = 1; wanted.length > 0 && look <= LOOKS; look += 1) {
    if (look > 1) await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    const left: string[] = [];
    for (const endpointId of wanted)
      if (!(await applyOrderScope(database, endpointId))) left.push(endpointId);
    wanted = left;
  }
}

/** Endpoints for which another order scope was asked. */
export async function findWantedScopes(database: Database): Promise<string[]> {
  return await queryColumn<string>(
    database,
    'select id from webhook_endpoints where wanted_order_scope is not null order by id',
  );
}
