import { type ErasedTable, NotYetErased } from '../../platform/erasing.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { execute, queryColumn } from '../../platform/postgres/sql.ts';
import { removeDeliveries } from './remove.ts';
import { findOpenDeliveries } from './sweep.ts';

export const ERASED_REASON = 'dropped: erased';

/** The tables of the queue that a WABA leaves behind. */
export const ORDERING_KEYS: ErasedTable = {
  table: 'ordering_keys',
  count: 'orderingKeys',
  key: 'waba_id, key',
};

/** Erases the deliveries of events with their attempts. Throws NotYetErased during an attempt. */
export async function eraseDeliveriesOf(
  trx: Transaction,
  eventIds: readonly string[],
): Promise<{ attempts: number; deliveries: number }> {
  const ids = await deliveriesOf(trx, eventIds);
  // A replay may have queued some since they were stopped. The event of a batch has the id of the delivery that sends it.
  const queued = [...ids, ...eventIds];
  await removeDeliveries(trx, queued, { reason: ERASED_REASON });
  if ((await findOpenDeliveries(trx, queued)).size > 0)
    throw new NotYetErased('A delivery is being attempted.');
  return await deleteDeliveries(trx, ids);
}

/** Deletes the log of deliveries of events of which none is open. */
export async function deleteDeliveriesOf(trx: Transaction, eventIds: readonly string[]): Promise<void> {
  await deleteDeliveries(trx, await deliveriesOf(trx, eventIds));
}

/** Deletes up to `limit` deliveries of a WABA that outlived their events. */
export async function eraseDeliveriesOfWaba(
  trx: Transaction,
  wabaId: string,
  limit: number,
): Promise<{ attempts: number; deliveries: number }> {
  const ids = await queryColumn<string>(
    trx,
    'select id from deliveries where waba_id = :wabaId limit :limit',
    { wabaId, limit },
  );
  return await deleteDeliveries(trx, ids);
}

async function deliveriesOf(trx: Transaction, eventIds: readonly string[]): Promise<string[]> {
  return await queryColumn<string>(
    trx,
    'select id from deliveries where event_uuid = any (:eventIds::uuid[])',
    { eventIds },
  );
}

async function deleteDeliveries(
  trx: Transaction,
  ids: readonly string[],
): Promise<{ attempts: number; deliveries: number }> {
  const attempts = await execute(trx, 'delete from attempts where delivery_id = any (:ids::uuid[])', { ids });
  const deliveries = await execute(trx, 'delete from deliveries where id = any (:ids::uuid[])', { ids });
  return { attempts, deliveries };
}
