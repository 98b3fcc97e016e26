import { probeNow } from '../../engine/endpoint/probes.ts';
import { wakeDispatcher } from '../../engine/queue/enqueue.ts';
import { retryOne, retryWaiting } from '../../engine/queue/retry.ts';
import { type Audited, recordChange } from '../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { publicDeliveryId } from '../../platform/public-ids.ts';
import { RequestError } from '../../platform/request-input.ts';
import type { DeliveryDetail } from '../delivery-log/deliveries.ts';
import { attemptUnderWay, knownDelivery } from '../delivery-log/shown-delivery.ts';
import { endpointName, knownEndpoint } from './endpoints.ts';

type Tools = { database: Database } & Audited;

/** What came of a retry; `retried` false: the delivery was due already. */
export type RetriedDelivery = { id: string; endpointId: string; retried: boolean };

/**
 * Makes the next attempt of a delivery now instead of at its time; it counts as that attempt. While the breaker of its
 * endpoint is open, the next probe goes out now. Throws RequestError: `unknown_delivery`, `delivery_settled`,
 * `attempt_under_way`, `delivery_not_first`, `delivery_held`, `endpoint_not_enabled`.
 */
export async function retryDelivery(
  { database, actor }: Tools,
  wabaId: string,
  deliveryId: string,
): Promise<RetriedDelivery> {
  const delivery = await knownDelivery(database, wabaId, deliveryId);
  const { id, endpointId, queueState, sentWith } = delivery;
  const obstacle = obstacleToRetry(delivery);
  if (obstacle !== null) throw obstacle;
  const target = `delivery ${publicDeliveryId(id)}`;
  const retried = await database.transaction(async (trx) => {
    const isDue = queueState === 'retrying' && (await retryOne(trx, sentWith ?? id));
    if (queueState === 'retrying' && !isDue) throw attemptUnderWay();
    const probed = await probeNow(trx, endpointId);
    const change = { wabaId, action: 'delivery.retried', target, detail: { endpointId } };
    if (isDue || probed) await noteRetry(trx, actor, endpointId, change);
    return isDue || probed;
  });
  return { id: publicDeliveryId(id), endpointId, retried };
}

export function obstacleToRetry(delivery: DeliveryDetail): RequestError | null {
  const { queueState, blockedBy, endpointMode, attempts, state } = delivery;
  switch (queueState) {
    case null:
      return new RequestError(
        'delivery_settled',
        `This delivery is ${state === 'pending' ? 'settled' : state}: no attempt follows. Replay it to send it again.`,
      );
    case 'claimed':
      return attemptUnderWay();
    case 'queued':
      return new RequestError(
        'delivery_not_first',
        `This delivery waits behind an earlier one of its ordering key${blockedBy === null ? '' : `, ${publicDeliveryId(blockedBy)}: retry or drop that one`}.`,
      );
    case 'unreleased':
      return new RequestError('delivery_held', heldText(delivery));
    case 'suspended':
      return new RequestError('delivery_held', 'The replay of this delivery is paused: resume it.');
    default:
      if (endpointMode !== 'open' && endpointMode !== 'probing')
        return notEnabled(delivery.endpointId, endpointMode);
      // A test event is sent once, by its run.
      return queueState === 'retrying' && attempts === 0 ? attemptUnderWay() : null;
  }
}

/** Only an order has no body before it may be sent. */
function heldText({ body }: DeliveryDetail): string {
  if (body === null) return 'The order of this delivery waits for catalog data.';
  return 'The message of this delivery waits for others of its conversation, to be sent with them.';
}

async function noteRetry(
  trx: Transaction,
  actor: Audited['actor'],
  endpointId: string,
  change: Parameters<typeof recordChange>[2],
): Promise<void> {
  await recordChange(trx, actor, change);
  wakeDispatcher(trx);
  trx.notify('heliograph_endpoints', endpointId);
}

function notEnabled(endpointId: string, mode: string | null): RequestError {
  const message = `Endpoint ${endpointId} is ${mode ?? 'deleted'}: enable it first.`;
  return new RequestError('endpoint_not_enabled', message);
}

/** What came of a retry of all that waits for one; `more`: ask again for the rest. */
export type RetriedEndpoint = { id: string; retried: number; probed: boolean; more: boolean };

/**
 * Makes the next attempt of every delivery now that waits for a retry at this endpoint, as fast as its limits allow.
 * While its breaker is open, the next probe goes out now. Throws RequestError: `invalid_value`, `unknown_endpoint`,
 * `endpoint_not_enabled`.
 */
export async function retryEndpoint(
  { database, actor }: Tools,
  wabaId: string,
  endpointId: string,
): Promise<RetriedEndpoint> {
  const { id, mode } = await knownEndpoint(database, wabaId, endpointId);
  if (mode !== 'open' && mode !== 'probing') throw notEnabled(id, mode);
  const { retried, more } = await retryWaiting(database, id);
  const probed = await database.transaction(async (trx) => {
    const isProbed = await probeNow(trx, id);
    const detail = { retried, probed: isProbed };
    const change = { wabaId, action: 'endpoint.retried', target: endpointName(id), detail };
    if (retried > 0 || isProbed) await noteRetry(trx, actor, id, change);
    return isProbed;
  });
  return { id, retried, probed, more };
}
