import type { Transaction } from '../../platform/postgres/database.ts';
import { execute, queryColumn } from '../../platform/postgres/sql.ts';
import { carryParked } from './former-columns.ts';

/** Of these endpoints, those that have not been open for `closedSeconds`. */
export async function lockClosed(
  trx: Transaction,
  options: { endpointIds: readonly string[]; closedSeconds: number },
): Promise<string[]> {
  const isClosed = `h.endpoint_id = any (cast(:endpointIds as bigint[])) and h.mode <> 'open'
         and h.mode_changed_at < now() - cast(:closedSeconds as float8) * interval '1 second'`;
  return await lockEndpoints(trx, isClosed, options);
}

/** Those that take deliveries again and have parked ones. */
export async function lockReopened(trx: Transaction): Promise<string[]> {
  return await lockEndpoints(trx, `h.has_parked and h.mode = 'open'`, {});
}

/** SQL: whether an endpoint takes deliveries again and has parked ones. */
export const HAS_REOPENED = `exists (select from endpoint_health where has_parked and mode = 'open')`;

const ENDPOINTS_AT_ONCE = 100;

/**
 * Until the transaction ends, the modes of these endpoints stay, and no other process parks their heads or lets them return. Of webhook_endpoints
 * for the release before this one, which looks for its mark there.
 */
async function lockEndpoints(
  trx: Transaction,
  condition: string,
  bindings: Record<string, number | readonly string[]>,
): Promise<string[]> {
  return await queryColumn<string>(
    trx,
    `select h.endpoint_id from endpoint_health h join webhook_endpoints w on w.id = h.endpoint_id where ${condition}
      order by h.endpoint_id limit ${ENDPOINTS_AT_ONCE} for no key update skip locked`,
    bindings,
  );
}

/** Notes that these endpoints, which are locked, have parked deliveries. */
export async function markParked(trx: Transaction, ids: readonly string[]): Promise<void> {
  const text =
    'update endpoint_health set has_parked = true where endpoint_id = any (cast(:ids as bigint[])) and not has_parked';
  await execute(trx, text, { ids });
  await carryParked(trx, ids);
}

/** Notes of those of these endpoints, which are locked, that have no parked delivery any more. */
export async function unmarkParked(trx: Transaction, ids: readonly string[]): Promise<void> {
  await execute(
    trx,
    `update endpoint_health h set has_parked = false
      where endpoint_id = any (cast(:ids as bigint[]))
        and not exists (select 1 from delivery_queue q where q.parked and q.endpoint_id = h.endpoint_id)`,
    { ids },
  );
  await carryParked(trx, ids);
}
