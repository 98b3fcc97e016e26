import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import type { Claim } from './settle.ts';

export type RemoveOptions = {
  /** Why, for the delivery log. */
  reason: string;
  /** Claims of the caller: its own attempts are no obstacle. */
  tokens?: readonly string[];
  /** Also what anybody is attempting: its outcome is then not recorded. For endpoints that are gone. */
  underWayToo?: boolean;
  /** False: lanes that somebody else is working on are left alone instead of waited for. */
  waits?: boolean;
};

/**
 * Takes deliveries out of the queue for good, lets the next of their lanes go and writes `dropped` into the log, in one
 * statement (see the function remove_deliveries). What is being attempted stays, and so does a lane whose head was
 * settled meanwhile: ask again. Returns the ids of those that were removed.
 */
export async function removeDeliveries(
  database: Database,
  deliveryIds: readonly string[],
  { reason, tokens = [], underWayToo = false, waits = true }: RemoveOptions,
): Promise<string[]> {
  if (deliveryIds.length === 0) return [];
  const [row] = await query<{ removed: string[] | null }>(
    database,
    'select remove_deliveries(:deliveryIds, :reason, :tokens, :underWayToo, :waits) as removed',
    { deliveryIds, reason, tokens, underWayToo, waits },
  );
  return row?.removed ?? [];
}

/** Takes claimed deliveries out of the queue whose event or endpoint no longer exists: nothing could ever be sent. */
export async function dropOrphans(database: Database, claims: readonly Claim[]): Promise<void> {
  const tokens = [...new Set(claims.map(({ token }) => token))];
  const ids = claims.map(({ deliveryId }) => deliveryId);
  await removeDeliveries(database, ids, { reason: ORPHANED, tokens });
}

const ORPHANED = 'its event or its endpoint no longer exists';

/**
 * Takes those of these deliveries out of the queue whose event or endpoint no longer exists, and lets the next of
 * their lanes go: nothing could ever be sent. What an attempt holds is left to it. Returns the ids of those taken out.
 */
export async function dropUnsendable(
  database: Database,
  deliveryIds: readonly string[],
): Promise<readonly string[]> {
  const rows = await query<{ id: string }>(
    database,
    `select q.delivery_id as id from delivery_queue q
      where q.delivery_id = any (?::uuid[])
        and not exists (select 1 from events ev join webhook_endpoints e on e.id = q.endpoint_id
                         where ev.day = q.event_day and ev.id = q.event_uuid)`,
    [deliveryIds],
  );
  return await removeDeliveries(
    database,
    rows.map(({ id }) => id),
    { reason: ORPHANED },
  );
}

/** A head that is settled while it is waited for is followed by another; so many do not follow each other. */
const MAX_TRIES = 10;

/**
 * Takes one delivery out of the queue for good. `claimed`: an attempt is under way, look again later; `settled`: it has
 * left the queue before.
 */
export async function removeDelivery(
  trx: Transaction,
  deliveryId: string,
  reason: string,
): Promise<'removed' | 'claimed' | 'settled'> {
  for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
    if ((await removeDeliveries(trx, [deliveryId], { reason })).length > 0) return 'removed';
    const [row] = await query<{ underWay: boolean }>(
      trx,
      `select state = 'claimed' and lease_until > clock_timestamp() as "underWay"
         from delivery_queue where delivery_id = cast(? as uuid)`,
      [deliveryId],
    );
    if (row === undefined) return 'settled';
    if (row.underWay) return 'claimed';
  }
  return 'claimed';
}

/** The same for a delivery of a WABA's endpoint; those of others are `settled`. */
export async function dropDelivery(
  trx: Transaction,
  wabaId: string,
  deliveryId: string,
  reason: string,
): Promise<'removed' | 'claimed' | 'settled'> {
  const rows = await query(
    trx,
    `select 1 from delivery_queue q join webhook_endpoints e on e.id = q.endpoint_id and e.waba_id = :wabaId
      where q.delivery_id = cast(:deliveryId as uuid)`,
    { wabaId, deliveryId },
  );
  return rows.length === 0 ? 'settled' : await removeDelivery(trx, deliveryId, reason);
}
