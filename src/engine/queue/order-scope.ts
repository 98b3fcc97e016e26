import type { Transaction } from '../../platform/postgres/database.ts';
import { query, queryOnly } from '../../platform/postgres/sql.ts';
import { ORDER_SCOPE_LOCK } from './publishing-locks.ts';

/** Counting stops here. */
const MAX_COUNTED = 1_000;

/** Publishers of the group that come meanwhile wait behind it, and for no longer. */
const LOCK_WAIT_MS = 200;

/**
 * Keeps these WABAs' endpoints at their order scopes until the transaction ends; called before the scopes are read by which
 * lanes are chosen.
 */
export async function keepOrderScopes(trx: Transaction, wabaIds: readonly string[]): Promise<void> {
  await query(
    trx,
    `select count(pg_advisory_xact_lock_shared(:orderScopeLock, order_scope_group(waba_id)))
       from unnest(cast(:wabaIds as text[])) as w (waba_id)`,
    { orderScopeLock: ORDER_SCOPE_LOCK, wabaIds },
  );
}

/**
 * Counts the deliveries in the lanes of an endpoint's order scope, which another scope would let later events overtake. Nothing is
 * added to them until the transaction ends, which the caller does at once. A delivery that stepped aside has left its lane, so it
 * does not count. Throws a lock timeout when a publisher takes long.
 */
export async function lockLanes(
  trx: Transaction,
  { wabaId, id }: { wabaId: string; id: string },
): Promise<{ count: number; more: boolean }> {
  await query(
    trx,
    `select set_config('lock_timeout', :waitMs, true), set_config('enable_seqscan', 'off', true)`,
    { waitMs: String(LOCK_WAIT_MS) },
  );
  await query(trx, 'select pg_advisory_xact_lock(:orderScopeLock::integer, order_scope_group(:wabaId))', {
    orderScopeLock: ORDER_SCOPE_LOCK,
    wabaId,
  });
  const { count } = await queryOnly<{ count: number }>(
    trx,
    `select (heads.n + behind.n)::integer as count
       from (select count(*) as n from (select from delivery_queue
              where endpoint_id = :id and state <> 'queued' and stepped_aside_at is null limit :limit) as h) as heads,
            (select count(*) as n from (select from delivery_queue
              where endpoint_id = :id and state = 'queued' limit :limit) as b) as behind`,
    { id, limit: MAX_COUNTED + 1 },
  );
  return { count: Math.min(count, MAX_COUNTED), more: count > MAX_COUNTED };
}
