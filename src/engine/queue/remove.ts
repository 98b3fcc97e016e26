import { setTimeout as sleep } from 'node:timers/promises';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query, queryColumn, queryValue } from '../../platform/postgres/sql.ts';
import type { Claim } from './settle.ts';

export type RemoveOptions = {
  reason: string;
  /** Claims of the caller: its own attempts are no obstacle. */
  tokens?: readonly string[];
  /** Also what is being attempted: its outcome is then not recorded. For endpoints that are gone. */
  underWayToo?: boolean;
  /** False: lanes that another transaction works on are left alone instead of waited for. */
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
  const removed = await queryValue<string[]>(
    database,
    'select remove_deliveries(:deliveryIds, :reason, :tokens, :underWayToo, :waits)',
    { deliveryIds, reason, tokens, underWayToo, waits },
  );
  return removed ?? [];
}

/** Takes a claimed delivery out of the queue whose event no longer exists: nothing could ever be sent. */
export async function dropOrphan(database: Database, { deliveryId, token }: Claim): Promise<void> {
  const reason = 'its event or its endpoint no longer exists';
  await removeDeliveries(database, [deliveryId], { reason, tokens: [token] });
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
      `select state = 'claimed' and lease_until > (select clock_timestamp()) as "underWay"
         from delivery_queue where delivery_id = cast(:deliveryId as uuid)`,
      { deliveryId },
    );
    if (row === undefined) return 'settled';
    if (row.underWay) return 'claimed';
  }
  return 'claimed';
}

/** After a pass that found deliveries and dropped none. Longer after each: what lacks its head stays as it is. */
const PAUSE_MS = 10;

/** The rows that one transaction locks and removes at most. */
const PER_BATCH = 500;

/** Queue and log are written in one order; what else writes the log in groups may not, and then one of two yields. */
const DEADLOCK = '40P01';
const MAX_DEADLOCKS = 10;

export type DropOptions = Pick<RemoveOptions, 'reason' | 'underWayToo'> & {
  /** Once it is aborted, the rest is left for another drop. */
  ending?: AbortSignal;
};

type Dropped = {
  dropped: number;
  /** The last position that was considered: what was queued behind it stays. */
  upToPosition: string;
};

/**
 * Drops every delivery of an endpoint that waits: it leaves the queue and is `dropped` in the log. What is queued
 * after the drop began stays, and so does what an attempt is sending. Done in many short transactions: when it is cut
 * off, the rest still waits, and another drop takes it up.
 */
export async function dropWaiting(
  database: Database,
  endpointId: string,
  options: DropOptions,
): Promise<Dropped> {
  const last = await queryValue<string>(database, 'select max(position) from delivery_queue');
  const cut = { endpointId, upToPosition: last ?? '0', ...options };
  let dropped = 0;
  // A lane whose head was settled meanwhile is left for the next pass, and what stepped aside during a pass may have
  // moved behind it: so the last pass is one that found nothing.
  for (let inVain = 0; inVain < MAX_TRIES && !cut.ending?.aborted; ) {
    const pass = await dropPass(database, cut);
    if (pass.found === 0) break;
    dropped += pass.dropped;
    inVain = pass.dropped === 0 ? inVain + 1 : 0;
    await sleep(inVain * PAUSE_MS);
  }
  return { dropped, upToPosition: cut.upToPosition };
}

type Cut = DropOptions & { endpointId: string; upToPosition: string };

/**
 * Goes over all lanes of the endpoint once; `found`: how many there were to drop. Heads come last, so that nothing
 * becomes one only to be dropped.
 */
async function dropPass(database: Database, cut: Cut): Promise<{ dropped: number; found: number }> {
  const pass = { dropped: 0, found: 0 };
  for (const condition of [BEHIND, cut.underWayToo ? HEADS : FREE_HEADS]) {
    for (let after: Place | null = FIRST; after !== null && !cut.ending?.aborted; ) {
      const page: Place[] = await findDroppable(database, cut, condition, after);
      pass.found += page.length;
      pass.dropped += await dropPage(
        database,
        cut,
        page.map(({ id }) => id),
      );
      after = page.length < PER_BATCH ? null : (page.at(-1) ?? null);
    }
  }
  return pass;
}

const BEHIND = `state = 'queued'`;
const HEADS = `state <> 'queued'`;
const FREE_HEADS = `${HEADS} and (state <> 'claimed' or lease_until <= (select clock_timestamp()))`;

async function dropPage(database: Database, cut: Cut, deliveryIds: readonly string[]): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    try {
      return (await removeDeliveries(database, deliveryIds, cut)).length;
    } catch (error) {
      const isDeadlock = error instanceof Error && 'code' in error && error.code === DEADLOCK;
      if (!isDeadlock || tries === MAX_DEADLOCKS) throw error;
    }
  }
}

type Place = { id: string; lane: string; position: string };

const FIRST: Place = { id: '', lane: '', position: '0' };

/** The rows to drop in the next places, lane by lane. */
async function findDroppable(
  database: Database,
  { endpointId, upToPosition }: Cut,
  condition: string,
  { lane, position }: Place,
): Promise<Place[]> {
  return await query<Place>(
    database,
    `select delivery_id as id, lane, position from delivery_queue
      where endpoint_id = :endpointId and ${condition} and (lane, position) > (:lane, cast(:position as bigint))
        and position <= cast(:upToPosition as bigint)
      order by endpoint_id, lane, position limit ${PER_BATCH}`,
    { endpointId, upToPosition, lane, position },
  );
}

/**
 * Up to `limit` endpoints that are gone, of which something is still in the queue because their removal was cut off: one look
 * into the index per endpoint.
 */
export async function listGoneEndpoints(database: Database, limit: number): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `with recursive used as (
       (select endpoint_id as id from delivery_queue where state <> 'queued' order by endpoint_id limit 1)
       union all
       select (select endpoint_id from delivery_queue where state <> 'queued' and endpoint_id > used.id
                order by endpoint_id limit 1)
         from used where used.id is not null
     )
     select used.id from used
      where used.id is not null and not exists (select from webhook_endpoints e where e.id = used.id)
      limit :limit`,
    { limit },
  );
}
