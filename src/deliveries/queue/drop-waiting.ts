import type { Database, Transaction } from '../../database/database.ts';
import { execute, query } from '../../database/sql.ts';
import { wakeDispatcher } from './enqueue.ts';
import { promoteNext } from './settle.ts';

/** What one transaction locks and removes at most. */
const HEADS_PER_BATCH = 400;
const BEHIND_PER_BATCH = 600;

/** Queue and log are written in one order; what else writes the log in groups may not, and then one of two yields. */
const DEADLOCK = '40P01';
const MAX_TRIES = 10;

export type DropOptions = {
  /** Why, for the delivery log. */
  reason: string;
  /** Also those that an attempt holds at present: its outcome is then not recorded. For endpoints that are gone. */
  underWayToo?: boolean;
};

export type Dropped = {
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
    // A missed lane had its head settled meanwhile, or many rows: every further pass has less to do. What stepped aside
    // during a pass may have moved behind it, so the last pass is one that found nothing.
    if (!pass.missed && pass.dropped === 0) return { dropped, upToPosition: cut.upToPosition };
  }
}

type Cut = DropOptions & { wabaId: string; endpointId: string; upToPosition: string };
type Batch = {
  dropped: number;
  /** There may be more to drop in lanes that the pass has left behind. */
  missed: boolean;
  nextLane: string | null;
};

/** Goes over all lanes of the endpoint once. */
async function dropPass(database: Database, cut: Cut): Promise<{ dropped: number; missed: boolean }> {
  let dropped = 0;
  let missed = false;
  for (let lane: string | null = ''; lane !== null; ) {
    const batch: Batch = await inTransaction(database, cut, lane);
    dropped += batch.dropped;
    missed ||= batch.missed;
    lane = batch.nextLane;
  }
  return { dropped, missed };
}

async function inTransaction(database: Database, cut: Cut, fromLane: string): Promise<Batch> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await database.transaction((trx) => dropBatch(trx, cut, fromLane));
    } catch (error) {
      const isDeadlock = error instanceof Error && 'code' in error && error.code === DEADLOCK;
      if (!isDeadlock || tries === MAX_TRIES) throw error;
    }
  }
}

/**
 * Drops from the next lanes. Each lane's head is locked first, as everybody does who settles or queues in a lane, and
 * in the order of the lanes, as publishers do. Only the statements after that see all rows that were put behind the
 * heads, hence the rows are looked up, and the next heads promoted, in statements of their own.
 */
async function dropBatch(trx: Transaction, cut: Cut, fromLane: string): Promise<Batch> {
  const lanes = await nextLanes(trx, cut, fromLane);
  const here = lanes.slice(0, HEADS_PER_BATCH);
  if (here.length === 0) return { dropped: 0, missed: false, nextLane: null };
  const heads = await lockHeads(trx, cut, here);
  const behind = await rowsBehind(
    trx,
    cut,
    heads.map((head) => head.lane),
  );
  const removed = heads.filter((head) => head.droppable);
  const positions = [...removed, ...behind].map((row) => row.position);
  if (positions.length > 0) await remove(trx, cut, positions);
  const lanesWithoutHead = removed.map(({ lane }) => ({ endpoint_id: cut.endpointId, lane }));
  const promoted = removed.length > 0 ? await promoteNext(trx, lanesWithoutHead) : 0;
  if (promoted > 0) await wakeDispatcher(trx);
  const isCutShort = behind.length === BEHIND_PER_BATCH;
  return {
    dropped: positions.length,
    missed: isCutShort || heads.length < here.length,
    nextLane: isCutShort ? (behind.at(-1)?.lane ?? fromLane) : (lanes[HEADS_PER_BATCH] ?? null),
  };
}

/** Lanes whose head is old enough: it is the oldest of its lane. One more than a batch takes: there the next begins. */
async function nextLanes(trx: Transaction, cut: Cut, fromLane: string): Promise<string[]> {
  const rows = await query<{ lane: string }>(
    trx,
    `select lane from delivery_queue
      where endpoint_id = ? and state <> 'queued' and lane >= ? and position <= ?
      order by endpoint_id, lane limit ?`,
    [cut.endpointId, fromLane, cut.upToPosition, HEADS_PER_BATCH + 1],
  );
  return rows.map((row) => row.lane);
}

type Head = { position: string; lane: string; droppable: boolean };

/** A lane is absent whose head was settled while this waited for it. */
async function lockHeads(trx: Transaction, cut: Cut, lanes: readonly string[]): Promise<Head[]> {
  return await query<Head>(
    trx,
    `select position, lane,
            position <= ? and (? or state <> 'claimed' or lease_until <= clock_timestamp()) as droppable
       from delivery_queue
      where endpoint_id = ? and lane = any (?::text[]) and state <> 'queued'
      order by endpoint_id, lane for update`,
    [cut.upToPosition, cut.underWayToo === true, cut.endpointId, lanes],
  );
}

type Behind = { position: string; lane: string };

/** Lane by lane as far as a batch goes. Should lanes come in another order, the next pass finds what is left. */
async function rowsBehind(trx: Transaction, cut: Cut, lanes: readonly string[]): Promise<Behind[]> {
  return await query<Behind>(
    trx,
    `select behind.position, l.lane from unnest(?::text[]) as l (lane)
      cross join lateral (
        select position from delivery_queue
         where endpoint_id = ? and lane = l.lane and state = 'queued' and position <= ?
         order by position limit ?
      ) as behind
      limit ?`,
    [lanes, cut.endpointId, cut.upToPosition, BEHIND_PER_BATCH, BEHIND_PER_BATCH],
  );
}

async function remove(trx: Transaction, cut: Cut, positions: readonly string[]): Promise<void> {
  const rows = await query<{ day: string; id: string }>(
    trx,
    `delete from delivery_queue where position = any (?::bigint[])
     returning delivery_day as day, delivery_id as id`,
    [positions],
  );
  rows.sort((a, b) => (a.id < b.id ? -1 : 1));
  for (const [day, gone] of Map.groupBy(rows, (row) => row.day)) {
    await recordDropped(
      trx,
      cut,
      day,
      gone.map((row) => row.id),
    );
  }
}

/** One day at a time: a list of ids within one partition is always looked up by the primary key. */
async function recordDropped(trx: Transaction, cut: Cut, day: string, ids: readonly string[]): Promise<void> {
  await execute(
    trx,
    `update deliveries
        set state = 'dropped', finished_at = clock_timestamp(), next_attempt_at = null, last_error = ?
      where day = ? and id = any (?::uuid[]) and waba_id = ?`,
    [cut.reason, day, ids, cut.wabaId],
  );
}
