import type { Transaction } from './database.ts';
import { execute, query } from './sql.ts';
import type { Binding } from './statement.ts';

/** One open delivery to be queued. `released` is false while the event's body is still being made. */
export type QueuedDelivery = {
  endpointId: string;
  lane: string;
  released: boolean;
  deliveryDay: string;
  deliveryId: string;
  eventDay: string;
  eventUuid: string;
};

/**
 * Queues deliveries in the order given. The first of a lane becomes its head, the others wait behind it.
 *
 * The insert of a head either succeeds or meets the present head and locks it, so nobody can finish that head
 * before the rows behind it are visible to the promotion that follows. Positions of waiting rows are drawn
 * under that lock, hence their order is the order in which their transactions took the lane.
 */
export async function enqueueDeliveries(
  trx: Transaction,
  deliveries: readonly QueuedDelivery[],
): Promise<void> {
  if (deliveries.length === 0) return;
  const heads = firstOfEachLane(deliveries);
  const inserted = await insertHeads(trx, heads);
  const rest = deliveries.filter((delivery) => !inserted.has(delivery.deliveryId));
  if (rest.length > 0) await insertBehind(trx, rest);
}

function firstOfEachLane(deliveries: readonly QueuedDelivery[]): QueuedDelivery[] {
  const firsts = new Map<string, QueuedDelivery>();
  for (const delivery of deliveries) {
    const key = `${delivery.endpointId} ${delivery.lane}`;
    if (!firsts.has(key)) firsts.set(key, delivery);
  }
  return [...firsts.values()];
}

const COLUMNS = 'endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid';
const UNNEST = `unnest(?::bigint[], ?::text[], ?::boolean[], ?::date[], ?::uuid[], ?::date[], ?::uuid[])
  with ordinality as d (endpoint_id, lane, released, delivery_day, delivery_id, event_day, event_uuid, n)`;

function columnArrays(deliveries: readonly QueuedDelivery[]): Binding[] {
  return [
    deliveries.map((d) => d.endpointId),
    deliveries.map((d) => d.lane),
    deliveries.map((d) => d.released),
    deliveries.map((d) => d.deliveryDay),
    deliveries.map((d) => d.deliveryId),
    deliveries.map((d) => d.eventDay),
    deliveries.map((d) => d.eventUuid),
  ];
}

/** Returns the ids of the deliveries that became heads. Lanes are locked in one order, so writers cannot deadlock. */
async function insertHeads(trx: Transaction, heads: readonly QueuedDelivery[]): Promise<Set<string>> {
  const rows = await query<{ delivery_id: string }>(
    trx,
    `insert into delivery_queue (${COLUMNS})
     select endpoint_id, lane, case when released then 'due' else 'held' end, released,
            delivery_day, delivery_id, event_day, event_uuid
       from ${UNNEST}
      order by endpoint_id, lane
     on conflict (endpoint_id, lane) where state <> 'queued' do update set lane = excluded.lane
     returning delivery_id`,
    columnArrays(heads),
  );
  return new Set(rows.map((row) => row.delivery_id));
}

async function insertBehind(trx: Transaction, rest: readonly QueuedDelivery[]): Promise<void> {
  await execute(
    trx,
    `insert into delivery_queue (${COLUMNS})
     select endpoint_id, lane, 'queued', released, delivery_day, delivery_id, event_day, event_uuid
       from ${UNNEST}
      order by n`,
    columnArrays(rest),
  );
}

/** Makes a reserved event's deliveries claimable, where they are heads; those behind follow when promoted. */
export async function releaseEvent(trx: Transaction, eventUuid: string): Promise<void> {
  await execute(
    trx,
    `update delivery_queue set released = true, state = case when state = 'held' then 'due' else state end
      where event_uuid = ? and not released`,
    [eventUuid],
  );
}

/**
 * Takes a claimed head out of the queue and promotes the next of its lane.
 * Returns false when the claim is no longer ours (its lease ended and somebody else took over): nothing is changed.
 *
 * Two statements on purpose: the promotion needs a snapshot taken after the head is locked, otherwise it
 * misses rows that were queued behind the head meanwhile.
 */
export async function removeClaimed(trx: Transaction, deliveryId: string, token: string): Promise<boolean> {
  const [head] = await query<{ endpoint_id: string; lane: string }>(
    trx,
    `delete from delivery_queue where delivery_id = ? and token = ? and state = 'claimed'
     returning endpoint_id, lane`,
    [deliveryId, token],
  );
  if (head === undefined) return false;
  await promoteNext(trx, head.endpoint_id, head.lane);
  return true;
}

/**
 * Takes a head out of the queue that nobody is attempting and promotes the next of its lane.
 * `claimed`: an attempt holds it at present; `absent`: it is settled.
 */
export async function removeUnclaimed(
  trx: Transaction,
  deliveryId: string,
): Promise<{ kind: 'removed'; attempts: number } | { kind: 'claimed' } | { kind: 'absent' }> {
  const [row] = await query<{ endpoint_id: string; lane: string; attempts: number; claimed: boolean }>(
    trx,
    `select endpoint_id, lane, attempts, state = 'claimed' and lease_until > clock_timestamp() as claimed
       from delivery_queue where delivery_id = ? for update`,
    [deliveryId],
  );
  if (row === undefined) return { kind: 'absent' };
  if (row.claimed) return { kind: 'claimed' };
  await execute(trx, 'delete from delivery_queue where delivery_id = ?', [deliveryId]);
  await promoteNext(trx, row.endpoint_id, row.lane);
  return { kind: 'removed', attempts: row.attempts };
}

async function promoteNext(trx: Transaction, endpointId: string, lane: string): Promise<void> {
  await execute(
    trx,
    `update delivery_queue set state = case when released then 'due' else 'held' end
      where position = (select position from delivery_queue
                         where endpoint_id = ? and lane = ? and state = 'queued'
                         order by position limit 1)`,
    [endpointId, lane],
  );
}
