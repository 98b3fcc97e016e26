import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, hasRow, query, queryColumn } from '../../platform/postgres/sql.ts';
import { insertDeliveries, type NewDelivery } from './delivery-log.ts';
import { enqueueDeliveries, wakeDispatcher } from './enqueue.ts';
import { removeDeliveries } from './remove.ts';

export type QueuedReplay = {
  id: string;
  wabaId: string;
  state: 'running' | 'paused' | 'done' | 'cancelled';
  createdAt: Date;
};

export type ReplayDelivery = Required<Omit<NewDelivery, 'wabaId' | 'endpointId' | 'replayId'>> & {
  lane: string;
};

/** Logs and queues the deliveries of a page, which are all for one endpoint, in the order given. */
export async function queueReplayDeliveries(
  trx: Transaction,
  { id: replayId, wabaId }: Pick<QueuedReplay, 'id' | 'wabaId'>,
  endpointId: string,
  deliveries: readonly ReplayDelivery[],
): Promise<void> {
  if (deliveries.length === 0) return;
  const place = { wabaId, endpointId, replayId, released: true, replay: true };
  const rows = deliveries.map((delivery) => ({ ...delivery, ...place }));
  await insertDeliveries(trx, rows);
  await enqueueDeliveries(trx, rows);
  wakeDispatcher(trx);
}

/** A delivery of a replay that is still in the queue; `released` false: its replay is paused. */
export type OpenReplayDelivery = { endpointId: string; deliveryId: string; released: boolean };

export async function openReplayDeliveries(
  database: Database,
  replay: QueuedReplay,
): Promise<OpenReplayDelivery[]> {
  const open: OpenReplayDelivery[] = [];
  for (const ids of await pendingIds(database, replay)) {
    const rows = await query<OpenReplayDelivery>(
      database,
      `select endpoint_id as "endpointId", delivery_id as "deliveryId", released from delivery_queue
        where delivery_id = any (:ids::uuid[])`,
      { ids },
    );
    open.push(...rows);
  }
  return open;
}

/** Whether a delivery of a replay waits for an endpoint: one of each lane is a head. */
export async function hasReplayHeads(database: Database, endpointId: string): Promise<boolean> {
  return await hasRow(
    database,
    `select 1 from delivery_queue where endpoint_id = :endpointId and state <> 'queued' and replay limit 1`,
    { endpointId },
  );
}

const IDS_AT_ONCE = 1_000;
const CANCELLED = 'given up: the replay was cancelled';

/**
 * Unsettled deliveries of a replay, in portions. The queue is then looked into by id: a join would be planned as a
 * look at the whole queue for each delivery while statistics are stale. Days of deliveries come from the clocks of
 * processes, the time of the replay from the database's: hence a day to spare.
 */
async function pendingIds(database: Database, replay: QueuedReplay): Promise<string[][]> {
  const ids = await queryColumn<string>(
    database,
    `select id from deliveries
      where replay_id = :id and state = 'pending' and day >= (cast(:createdAt as timestamptz) at time zone 'utc')::date - 1`,
    { id: replay.id, createdAt: replay.createdAt },
  );
  return Array.from({ length: Math.ceil(ids.length / IDS_AT_ONCE) }, (_, portion) =>
    ids.slice(portion * IDS_AT_ONCE, (portion + 1) * IDS_AT_ONCE),
  );
}

/**
 * Brings what a replay has in the queue into line with its state: while it is paused nothing of it can be claimed, and
 * once it is cancelled nothing waits for another attempt. Each portion is a separate transaction, so that others wait
 * for its rows for a moment only; `lock` reads and locks the replay in it, and ends the work when its state is another
 * by then: who changed it does the same for that. What is being attempted is left alone, as are rows that another
 * transaction has locked (waiting for them could deadlock), so it is to be repeated.
 */
export async function applyReplayState(
  database: Database,
  replay: QueuedReplay,
  lock: (trx: Transaction) => Promise<QueuedReplay | null>,
): Promise<void> {
  for (const ids of await pendingIds(database, replay)) {
    const isStill = await database.transaction(async (trx) => {
      const { state } = (await lock(trx)) ?? { state: null };
      if (state !== replay.state) return false;
      await applyTo(trx, state, ids);
      return true;
    });
    if (!isStill) return;
  }
}

async function applyTo(
  trx: Transaction,
  state: QueuedReplay['state'],
  ids: readonly string[],
): Promise<void> {
  if (state === 'cancelled') await removeDeliveries(trx, ids, { reason: CANCELLED, waits: false });
  else if ((await execute(trx, state === 'paused' ? SUSPEND : RESUME, { ids })) > 0) wakeDispatcher(trx);
}

/** Rows to change, locked without waiting; in `condition` nothing for which a partial index serves (see `rowIs`). */
function lockOpen(condition: string): string {
  return `select position from delivery_queue
    where replay and delivery_id = any (:ids::uuid[]) and ${condition} for update skip locked`;
}

const RESUME = `update delivery_queue
    set released = true, state = case when state = 'suspended' then 'due' else state end
  where position = any (array(${lockOpen('released::integer = 0')}))`;

const SUSPEND = `update delivery_queue
    set released = false, state = case when state = 'due' then 'suspended' else state end
  where position = any (array(${lockOpen(`released and state in ('queued', 'due')`)}))`;
