import type { Database, Transaction } from '../../database/database.ts';
import { execute, query } from '../../database/sql.ts';
import { wakeDispatcher } from './enqueue.ts';
import { promoteNext } from './settle.ts';

type Waiting = { endpoint_id: string; lane: string; state: string; day: string; under_way: boolean };

/**
 * Takes one delivery of a WABA out of the queue for good, and lets the next of its lane go if it was the head.
 * `claimed`: an attempt is under way; `settled`: there is nothing to drop.
 */
export async function dropDelivery(
  database: Database,
  wabaId: string,
  deliveryId: string,
  reason: string,
): Promise<'dropped' | 'claimed' | 'settled'> {
  return await database.transaction(async (trx) => {
    await lockHeadOf(trx, wabaId, deliveryId);
    const [waiting] = await query<Waiting>(
      trx,
      `select q.endpoint_id, q.lane, q.state, q.delivery_day as day,
              q.state = 'claimed' and q.lease_until > clock_timestamp() as under_way
         from delivery_queue q join webhook_endpoints e on e.id = q.endpoint_id and e.waba_id = :wabaId
        where q.delivery_id = cast(:deliveryId as uuid) for update of q`,
      { wabaId, deliveryId },
    );
    if (waiting === undefined) return 'settled';
    if (waiting.under_way) return 'claimed';
    await execute(trx, 'delete from delivery_queue where delivery_id = cast(? as uuid)', [deliveryId]);
    if (waiting.state !== 'queued') {
      await promoteNext(trx, [waiting]);
      wakeDispatcher(trx);
    }
    await execute(
      trx,
      `update deliveries
          set state = 'dropped', finished_at = clock_timestamp(), next_attempt_at = null, last_error = :reason
        where day = cast(:day as date) and id = cast(:deliveryId as uuid) and waba_id = :wabaId`,
      { wabaId, deliveryId, day: waiting.day, reason },
    );
    return 'dropped';
  });
}

/** A head that was settled while its lock was waited for is followed by another; so many do not follow each other. */
const MOST_HEADS = 10;

/**
 * Locks the head of the delivery's lane, so that nobody settles it meanwhile: the next of the lane is picked before its
 * lock is waited for, and if that one were dropped, the lane would be left without a head, for good.
 */
async function lockHeadOf(trx: Transaction, wabaId: string, deliveryId: string): Promise<void> {
  const place = `from delivery_queue q join webhook_endpoints e on e.id = q.endpoint_id and e.waba_id = :wabaId
    where q.delivery_id = cast(:deliveryId as uuid)`;
  for (let tries = 1; tries <= MOST_HEADS; tries += 1) {
    const heads = await query(
      trx,
      `select 1 from delivery_queue h
        where (h.endpoint_id, h.lane) = (select q.endpoint_id, q.lane ${place}) and h.state <> 'queued'
          for update of h`,
      { wabaId, deliveryId },
    );
    if (heads.length > 0) return;
    if ((await query(trx, `select 1 ${place}`, { wabaId, deliveryId })).length === 0) return;
  }
}
