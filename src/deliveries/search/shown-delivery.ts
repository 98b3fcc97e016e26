import { type Actor, recordChange } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { deliveryUuidOf, publicDeliveryId } from '../../platform/public-ids.ts';
import { RequestError } from '../../platform/request-input.ts';
import {
  type DeliveryDetail,
  findDeliveryDetail,
  type LoggedAttempt,
  listAttempts,
} from '../log/deliveries.ts';
import { dropDelivery } from '../queue/remove.ts';

/** The newest are shown: a dead endpoint can be probed for days. */
const MAX_ATTEMPTS = 20;

export type DeliveryReport = { delivery: DeliveryDetail; attempts: LoggedAttempt[] };

/** One delivery of a WABA with its newest attempts, by its public id. Throws RequestError `unknown_delivery`. */
export async function deliveryOf(
  { database }: { database: Database },
  wabaId: string,
  deliveryId: string,
): Promise<DeliveryReport> {
  const uuid = knownUuid(deliveryId);
  const [delivery, attempts] = await Promise.all([
    findDeliveryDetail(database, wabaId, uuid),
    listAttempts(database, wabaId, uuid, MAX_ATTEMPTS),
  ]);
  if (delivery === null) throw unknownDelivery(deliveryId);
  return { delivery, attempts };
}

/**
 * Drops a delivery that waits: it is not sent any more and stays in the log; the next of its ordering key goes out.
 * Throws RequestError: `unknown_delivery`, `attempt_under_way`, `delivery_settled`.
 */
export async function cancelDelivery(
  { database }: { database: Database },
  wabaId: string,
  deliveryId: string,
  actor: Actor,
): Promise<void> {
  const uuid = knownUuid(deliveryId);
  const delivery = await findDeliveryDetail(database, wabaId, uuid);
  if (delivery === null) throw unknownDelivery(deliveryId);
  const { eventId, endpointId } = delivery;
  await database.transaction(async (trx) => {
    const outcome = await dropDelivery(trx, wabaId, uuid, `dropped by ${actor.name}`);
    if (outcome === 'claimed') {
      throw new RequestError('attempt_under_way', 'An attempt is under way; look again in a moment.');
    }
    if (outcome === 'settled') {
      throw new RequestError(
        'delivery_settled',
        'This delivery does not wait any more; nothing was changed.',
      );
    }
    await recordChange(trx, actor, {
      wabaId,
      action: 'delivery.dropped',
      target: `delivery ${publicDeliveryId(uuid)}`,
      detail: { eventId, endpointId },
    });
  });
}

function knownUuid(deliveryId: string): string {
  const uuid = deliveryUuidOf(deliveryId);
  if (uuid === null) throw unknownDelivery(deliveryId);
  return uuid;
}

function unknownDelivery(deliveryId: string): RequestError {
  return new RequestError('unknown_delivery', `There is no delivery ${deliveryId}.`);
}
