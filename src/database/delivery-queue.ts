import type { Transaction } from './database.ts';
import { promoteNext } from './delivery-settlement.ts';
import { execute, query } from './sql.ts';
import type { Binding } from './statement.ts';

/** Claims heads for a session while they are inserted. */
export type DirectClaimer = {
  token: string;
  leaseMs: number;
  /** Whether the session takes this delivery if it becomes a head. */
  take(deliveryId: string, endpointId: string): boolean;
};

/** One open delivery to be queued. `released` is false while the event's body is still being made. */
export type QueuedDelivery = {
  endpointId: string;
  lane: string;
  released: boolean;
  /** Its endpoint takes deliveries at present: only then may a claimer take it. */
  open?: boolean;
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
 *
 * Returns those that were claimed by `claimer`: they are attempted once the transaction is committed.
 */
export async function enqueueDeliveries<Delivery extends QueuedDelivery>(
  trx: Transaction,
  deliveries: readonly Delivery[],
  claimer: DirectClaimer | null = null,
): Promise<Delivery[]> {
  if (deliveries.length === 0) return [];
  const heads = firstOfEachLane(deliveries);
  const wanted = new Set(
    heads.filter(({ open, released, deliveryId, endpointId }) => {
      return open === true && released && claimer?.take(deliveryId, endpointId) === true;
    }),
  );
  const inserted = await insertHeads(trx, heads, wanted, claimer);
  const rest = deliveries.filter((delivery) => !inserted.has(delivery.deliveryId));
  if (rest.length > 0) await insertBehind(trx, rest);
  return [...wanted].filter(({ deliveryId }) => inserted.has(deliveryId));
}

function firstOfEachLane<Delivery extends QueuedDelivery>(deliveries: readonly Delivery[]): Delivery[] {
  const firsts = new Map<string, Delivery>();
  for (const delivery of deliveries) {
    const key = `${delivery.endpointId} ${delivery.lane}`;
    if (!firsts.has(key)) firsts.set(key, delivery);
  }
  return [...firsts.values()];
}

const COLUMNS = 'endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid';
const UNNEST = 'unnest(?::bigint[], ?::text[], ?::boolean[], ?::date[], ?::uuid[], ?::date[], ?::uuid[]';
const AS = 'd (endpoint_id, lane, released, delivery_day, delivery_id, event_day, event_uuid';

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
async function insertHeads(
  trx: Transaction,
  heads: readonly QueuedDelivery[],
  claimed: ReadonlySet<QueuedDelivery>,
  claimer: DirectClaimer | null,
): Promise<Set<string>> {
  const rows = await query<{ delivery_id: string }>(
    trx,
    `insert into delivery_queue (${COLUMNS}, by_session, token, lease_until)
     select endpoint_id, lane, case when claimed then 'claimed' when released then 'due' else 'held' end, released,
            delivery_day, delivery_id, event_day, event_uuid, claimed, case when claimed then ?::uuid end,
            case when claimed then clock_timestamp() + ?::float8 * interval '1 millisecond' end
       from ${UNNEST}, ?::boolean[]) as ${AS}, claimed)
      order by endpoint_id, lane
     on conflict (endpoint_id, lane) where state <> 'queued' do update set lane = excluded.lane
     returning delivery_id`,
    [
      claimer?.token ?? null,
      claimer?.leaseMs ?? 0,
      ...columnArrays(heads),
      heads.map((head) => claimed.has(head)),
    ],
  );
  return new Set(rows.map((row) => row.delivery_id));
}

async function insertBehind(trx: Transaction, rest: readonly QueuedDelivery[]): Promise<void> {
  await execute(
    trx,
    `insert into delivery_queue (${COLUMNS})
     select endpoint_id, lane, 'queued', released, delivery_day, delivery_id, event_day, event_uuid
       from ${UNNEST}) with ordinality as ${AS}, n)
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
  await promoteNext(trx, [row]);
  return { kind: 'removed', attempts: row.attempts };
}
