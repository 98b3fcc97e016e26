import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import type { ClaimedDelivery } from './claim.ts';

/** Claims heads for a session while they are inserted. */
export type DirectClaimer = {
  token: string;
  leaseMs: number;
  /** Whether the session takes one more delivery for this endpoint. */
  take(endpointId: string): boolean;
  /** Deliveries were queued behind others, which may be the session's. */
  onFollowers?(): void;
};

/** Claims that a publisher makes for the session of the same process, in the transaction that queues the deliveries. */
export type DirectClaims = DirectClaimer & {
  /** After the commit: the session attempts what was claimed. */
  carry(claims: readonly ClaimedDelivery[]): void;
  /** After a rollback: nothing was claimed. */
  cancel(): void;
};

/** One pending delivery to be queued. `released` is false while the event's body is still being made. */
export type QueuedDelivery = {
  endpointId: string;
  lane: string;
  released: boolean;
  /** Its endpoint takes deliveries at present: only then may a claimer take it. */
  open?: boolean;
  replay?: boolean;
  deliveryDay: string;
  deliveryId: string;
  eventDay: string;
  eventUuid: string;
};

/**
 * Queues deliveries in the order given: the first of a lane becomes its head, the others wait behind it (see the
 * function enqueue_deliveries for how order is kept).
 */
export async function enqueueDeliveries(
  trx: Transaction,
  deliveries: readonly QueuedDelivery[],
): Promise<void> {
  if (deliveries.length === 0) return;
  await query(
    trx,
    `select enqueue_deliveries(:endpointId, :lane, :released, :replays, :deliveryDay, :deliveryId, :eventDay,
                               :eventUuid, :firsts, :claimed, :token, :leaseMs)`,
    { ...planQueueing(deliveries, null).parameters, replays: deliveries.map((d) => d.replay ?? false) },
  );
}

/** Queues the delivery of a test event, due now and left to its run for a moment. False: its lane has a head already. */
export async function enqueueTest(trx: Transaction, delivery: QueuedDelivery): Promise<boolean> {
  const queued = await execute(
    trx,
    `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day,
                                 event_uuid, run, next_attempt_at)
     values (:endpointId, :lane, 'retrying', :released, :deliveryDay, :deliveryId, :eventDay, :eventUuid,
             'extra', clock_timestamp())
     on conflict (endpoint_id, lane) where state <> 'queued' do nothing`,
    delivery,
  );
  return queued === 1;
}

/**
 * How deliveries are queued: `parameters` are those of enqueue_deliveries and publish_events, and `claimed` says which
 * of them the claimer has, by the heads that it got. Of each lane only the first can become a head.
 */
export function planQueueing<Delivery extends QueuedDelivery>(
  deliveries: readonly Delivery[],
  claimer: DirectClaimer | null,
) {
  const firsts = firstsOf(deliveries);
  const mayTake =
    claimer === null ? [] : [...firsts].filter(({ open, released }) => open === true && released);
  const wanted = new Set(mayTake.filter(({ endpointId }) => claimer?.take(endpointId)));
  const parameters = {
    ...columnsOf(
      deliveries,
      'endpointId',
      'lane',
      'released',
      'deliveryDay',
      'deliveryId',
      'eventDay',
      'eventUuid',
    ),
    firsts: deliveries.map((d) => firsts.has(d)),
    claimed: deliveries.map((d) => wanted.has(d)),
    token: claimer?.token ?? null,
    leaseMs: claimer?.leaseMs ?? 0,
  };
  const claimed = (heads: readonly string[]): Delivery[] => {
    const isHead = new Set(heads);
    return [...wanted].filter(({ deliveryId }) => isHead.has(deliveryId));
  };
  return { parameters, claimed };
}

function firstsOf<Delivery extends QueuedDelivery>(deliveries: readonly Delivery[]): Set<Delivery> {
  const firsts = new Map<string, Delivery>();
  for (const delivery of deliveries) {
    const place = `${delivery.endpointId} ${delivery.lane}`;
    if (!firsts.has(place)) firsts.set(place, delivery);
  }
  return new Set(firsts.values());
}

/** Makes a reserved event's deliveries claimable, where they are heads; those behind follow when promoted. */
export async function releaseEvent(trx: Transaction, eventUuid: string): Promise<void> {
  await query(trx, 'select release_event(cast(:eventUuid as uuid))', { eventUuid });
}

/** Has the dispatchers look for work at once; in a transaction, when it is committed. */
export function wakeDispatcher(database: Database): void {
  database.notify('heliograph_deliveries');
}
