import { insertDeliveries } from '../../src/engine/queue/delivery-log.ts';
import { enqueueDeliveries } from '../../src/engine/queue/enqueue.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';
import { dayOfUuidV7, uuidV7 } from '../../src/platform/public-ids.ts';

/** A delivery of an event of its own, to be queued. */
export function newQueuedRow(endpointId: string, lane: string, released = true, wabaId = '900000000000101') {
  const id = uuidV7(Date.now());
  const day = dayOfUuidV7(id);
  const event = { eventDay: day, eventUuid: id };
  return {
    endpointId,
    lane,
    released,
    open: true,
    deliveryDay: day,
    deliveryId: id,
    wabaId,
    ...event,
  };
}

export type QueuedRow = ReturnType<typeof newQueuedRow>;

/** Logs and queues rows as a publisher does, and returns the position that each got. */
export async function queueRows(
  database: Database,
  rows: readonly QueuedRow[],
): Promise<Map<string, bigint>> {
  return await database.transaction(async (trx) => {
    await insertDeliveries(trx, rows);
    await enqueueDeliveries(trx, rows);
    const queued = await query<{ id: string; position: string }>(
      trx,
      'select delivery_id as id, position from delivery_queue where delivery_id = any (:deliveryIds::uuid[])',
      { deliveryIds: rows.map((row) => row.deliveryId) },
    );
    return new Map(queued.map(({ id, position }) => [id, BigInt(position)]));
  });
}
