import type { Transaction } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/**
 * Makes the oldest waiting delivery of each lane its head (see the function promote_next). The heads before it must have
 * been locked and moved away by an earlier statement.
 */
export async function promoteNext(
  trx: Transaction,
  lanes: readonly { endpoint_id: string; lane: string }[],
): Promise<void> {
  await query(trx, 'select promote_next(?, ?, null, null)', [
    lanes.map((lane) => lane.endpoint_id),
    lanes.map((lane) => lane.lane),
  ]);
}
