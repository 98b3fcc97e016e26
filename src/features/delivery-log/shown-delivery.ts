import { removeDelivery } from '../../engine/queue/remove.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { deliveryUuidOf, publicDeliveryId } from '../../platform/public-ids.ts';
import { RequestError } from '../../platform/request-input.ts';
import {
  type DeliveryDetail,
  findDeliveryDetail,
  findOwners,
  type LoggedAttempt,
  listAttempts,
} from './deliveries.ts';

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
 * Drops a delivery that waits, with those that would be sent with it: it is not sent any more and stays in the log; the next of its ordering key goes out. One
 * that was dropped before is left as it is. Throws RequestError: `unknown_delivery`, `attempt_under_way`, `delivery_settled`.
 */
export async function cancelDelivery(
  { database, actor }: { database: Database } & Audited,
  wabaId: string,
  deliveryId: string,
): Promise<{ id: string; endpointId: string }> {
  const { id, endpointId, state, sentWith } = await knownDelivery(database, wabaId, deliveryId);
  const target = publicDeliveryId(id);
  if (state === 'dropped') return { id: target, endpointId };
  await database.transaction(async (trx) => {
    const outcome = await removeDelivery(trx, sentWith ?? id, `dropped by ${actor.name}`);
    if (outcome === 'claimed') throw attemptUnderWay();
    if (outcome === 'settled') {
      throw new RequestError(
        'delivery_settled',
        'This delivery does not wait any more; nothing was changed.',
      );
    }
    await recordChange(trx, actor, {
      wabaId,
      action: 'delivery.dropped',
      target: `delivery ${target}`,
      // The eventId holds the customer's number, and the log outlives an erasure.
      detail: { endpointId },
    });
    trx.notify('heliograph_endpoints', endpointId);
  });
  return { id: target, endpointId };
}

/** The delivery of a WABA with this public id. Throws RequestError `unknown_delivery`. */
export async function knownDelivery(
  database: Database,
  wabaId: string,
  deliveryId: string,
): Promise<DeliveryDetail> {
  const delivery = await findDeliveryDetail(database, wabaId, knownUuid(deliveryId));
  if (delivery === null) throw unknownDelivery(deliveryId);
  return delivery;
}

/** The WABA of a delivery, for operators, who may name it by its id only. Throws RequestError `unknown_delivery`. */
export async function wabaOfDelivery(
  { database }: { database: Database },
  deliveryId: string,
): Promise<string> {
  const owners = await findOwners(database, knownUuid(deliveryId));
  if (owners === null) throw unknownDelivery(deliveryId);
  return owners.wabaId;
}

export function attemptUnderWay(): RequestError {
  return new RequestError('attempt_under_way', 'An attempt is in progress; check again in a moment.');
}

function knownUuid(deliveryId: string): string {
  const uuid = deliveryUuidOf(deliveryId);
  if (uuid === null) throw unknownDelivery(deliveryId);
  return uuid;
}

function unknownDelivery(deliveryId: string): RequestError {
  return new RequestError('unknown_delivery', `There is no delivery ${deliveryId}.`);
}
