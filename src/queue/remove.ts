import type { Database, Transaction } from '../platform/postgres/database.ts';
import { query, queryValue } from '../platform/postgres/sql.ts';
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
      `select state = 'claimed' and lease_until > clock_timestamp() as "underWay"
         from delivery_queue where delivery_id = cast(? as uuid)`,
      [deliveryId],
    );
    if (row === undefined) return 'settled';
    if (row.underWay) return 'claimed';
  }
  return 'claimed';
}

/** What one transaction locks and removes at most. */
const HEADS_PER_BATCH = 400;
const BEHIND_PER_BATCH = 600;

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
  wabaId: string,
  endpointId: string,
  options: DropOptions,
): Promise<Dropped> {
  const [last] = await query<{ position: string }>(
    database,
    'select coalesce(max(position), 0) as position from delivery_queue',
  );
  const cut = { wabaId, endpointId, upToPosition: last?.position ?? '0', ...options };
  let dropped = 0;
  for (;;) {
    const pass = await dropPass(database, cut);
    dropped += pass.dropped;
    // A lane whose head was settled meanwhile is left for the next pass, and what stepped aside during a pass may have
    // moved behind it: so the last pass is one that found nothing.
    if (pass.found === 0 || cut.ending?.aborted) return { dropped, upToPosition: cut.upToPosition };
  }
}

type Cut = DropOptions & { wabaId: string; endpointId: string; upToPosition: string };

/** Goes over all lanes of the endpoint once; `found`: how many there were to drop. */
async function dropPass(database: Database, cut: Cut): Promise<{ dropped: number; found: number }> {
  const pass = { dropped: 0, found: 0 };
  for (let lane: string | null = ''; lane !== null && !cut.ending?.aborted; ) {
    const page: Page = await findDroppable(database, cut, lane);
    pass.found += page.deliveryIds.length;
    pass.dropped += await dropPage(database, cut, page.deliveryIds);
    lane = page.nextLane;
  }
  return pass;
}

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

type Page = { deliveryIds: string[]; nextLane: string | null };

/** What there is to drop in the next lanes, as far as a transaction goes. */
async function findDroppable(database: Database, cut: Cut, fromLane: string): Promise<Page> {
  const heads = await findHeads(database, cut, fromLane);
  const here = heads.slice(0, HEADS_PER_BATCH);
  const behind = await findBehind(
    database,
    cut,
    here.map(({ lane }) => lane),
  );
  const isCutShort = behind.length === BEHIND_PER_BATCH;
  const droppable = [...here.filter((head) => head.droppable), ...behind];
  return {
    deliveryIds: droppable.map(({ id }) => id),
    nextLane: isCutShort ? (behind.at(-1)?.lane ?? fromLane) : (heads[HEADS_PER_BATCH]?.lane ?? null),
  };
}

type Found = { id: string; lane: string };

/** Heads that are old enough: each is the oldest of its lane. One more than a batch takes: there the next begins. */
async function findHeads(
  database: Database,
  cut: Cut,
  fromLane: string,
): Promise<(Found & { droppable: boolean })[]> {
  return await query<Found & { droppable: boolean }>(
    database,
    `select delivery_id as id, lane, ? or state <> 'claimed' or lease_until <= clock_timestamp() as droppable
       from delivery_queue
      where endpoint_id = ? and state <> 'queued' and lane >= ? and position <= ?
      order by endpoint_id, lane limit ?`,
    [cut.underWayToo === true, cut.endpointId, fromLane, cut.upToPosition, HEADS_PER_BATCH + 1],
  );
}

/** Lane by lane as far as a batch goes. Should lanes come in another order, the next pass finds what is left. */
async function findBehind(database: Database, cut: Cut, lanes: readonly string[]): Promise<Found[]> {
  return await query<Found>(
    database,
    `select behind.id, l.lane from unnest(?::text[]) as l (lane)
      cross join lateral (
        select delivery_id as id from delivery_queue
         where endpoint_id = ? and lane = l.lane and state = 'queued' and position <= ?
         order by position limit ?
      ) as behind
      limit ?`,
    [lanes, cut.endpointId, cut.upToPosition, BEHIND_PER_BATCH, BEHIND_PER_BATCH],
  );
}

type GoneEndpoint = { endpointId: string; wabaId: string };

/** Up to `limit` endpoints whose removal was cut off before the queue was empty: one look into the index per endpoint. */
export async function listGoneEndpoints(database: Database, limit: number): Promise<GoneEndpoint[]> {
  return await query<GoneEndpoint>(
    database,
    `with recursive used as (
       (select endpoint_id as id from delivery_queue where state <> 'queued' order by endpoint_id limit 1)
       union all
       select (select endpoint_id from delivery_queue where state <> 'queued' and endpoint_id > used.id
                order by endpoint_id limit 1)
         from used where used.id is not null
     )
     select used.id as "endpointId",
            coalesce((select d.waba_id from delivery_queue q
                        join deliveries d on d.day = q.delivery_day and d.id = q.delivery_id
                       where q.endpoint_id = used.id and q.state <> 'queued' limit 1), '') as "wabaId"
       from used
      where used.id is not null and not exists (select from webhook_endpoints e where e.id = used.id)
      limit ?`,
    [limit],
  );
}
