import type { Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { releaseEvent, wakeDispatcher } from '../queue/enqueue.ts';
import { removeDeliveries } from '../queue/remove.ts';
import { contentJudge } from './content-filter.ts';
import { bodyOf, type EnvelopeParts } from './publish.ts';

/**
 * Gives a reserved event its body and makes its deliveries claimable.
 * Returns false when it was released before: its bytes stay as they are.
 */
export async function releaseReservedEvent(
  trx: Transaction,
  event: { wabaId: string; day: string; uuid: string; dataJson: string },
  occurredAt: Date,
): Promise<boolean> {
  const [reserved] = await query<EnvelopeParts>(
    trx,
    `select event_type as type, tenant_id as "tenantId", waba_id as "wabaId", phone_number_id as "phoneNumberId",
            event_id as "eventId"
       from events where day = :day and id = :uuid and waba_id = :wabaId and body is null for update`,
    { day: event.day, uuid: event.uuid, wabaId: event.wabaId },
  );
  if (reserved === undefined) return false;
  await execute(
    trx,
    'update events set body = :body, occurred_at = :occurredAt where day = :day and id = :uuid',
    { body: bodyOf(reserved, event.dataJson, occurredAt), occurredAt, day: event.day, uuid: event.uuid },
  );
  await dropFiltered(trx, event);
  await releaseEvent(trx, event.uuid);
  wakeDispatcher(trx);
  return true;
}

/** A reserved event is queued for endpoints before its data is known: those whose filter does not take it get none. */
async function dropFiltered(
  trx: Transaction,
  { wabaId, uuid, dataJson }: { wabaId: string; uuid: string; dataJson: string },
): Promise<void> {
  const queued = await query<{ deliveryId: string; filter: string[] }>(
    trx,
    `select q.delivery_id as "deliveryId", w.filter
       from webhook_endpoints w join delivery_queue q on q.endpoint_id = w.id and q.event_uuid = :uuid and not q.released
      where w.waba_id = :wabaId and w.filter is not null and not q.replay`,
    { wabaId, uuid },
  );
  const isTaken = contentJudge(dataJson);
  const unwanted = queued.filter(({ filter }) => !isTaken(filter)).map(({ deliveryId }) => deliveryId);
  await removeDeliveries(trx, unwanted, { reason: 'the filter of the endpoint does not take this event' });
}
