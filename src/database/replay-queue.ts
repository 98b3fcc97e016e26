import type { Database, Transaction } from './database.ts';
import type { Replay } from './replays.ts';
import { execute, query } from './sql.ts';
import type { Binding } from './statement.ts';

/** One delivery of a replay, to be logged and queued. */
export type ReplayDelivery = {
  deliveryDay: string;
  deliveryId: string;
  lane: string;
  eventDay: string;
  eventUuid: string;
  replayOf: string;
};

/** Logs and queues the deliveries of a page, which are all for one endpoint, in the order given. */
export async function queueReplayDeliveries(
  trx: Transaction,
  replay: Pick<Replay, 'id' | 'wabaId'>,
  endpointId: string,
  deliveries: readonly ReplayDelivery[],
): Promise<void> {
  if (deliveries.length === 0) return;
  await execute(
    trx,
    `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid, replay_id, replay_of)
     select d.day, d.id, ?, ?::bigint, d.event_day, d.event_uuid, ?::bigint, d.replay_of
       from unnest(?::date[], ?::uuid[], ?::date[], ?::uuid[], ?::uuid[])
              as d (day, id, event_day, event_uuid, replay_of)`,
    [
      replay.wabaId,
      endpointId,
      replay.id,
      deliveries.map((d) => d.deliveryDay),
      deliveries.map((d) => d.deliveryId),
      deliveries.map((d) => d.eventDay),
      deliveries.map((d) => d.eventUuid),
      deliveries.map((d) => d.replayOf),
    ],
  );
  const heads = [...new Map([...deliveries].reverse().map((d) => [d.lane, d])).values()];
  const inserted = await insertHeads(trx, endpointId, heads);
  const behind = deliveries.filter((d) => !inserted.has(d.deliveryId));
  if (behind.length > 0) await insertBehind(trx, endpointId, behind);
  await execute(trx, `select pg_notify('heliograph_deliveries', '')`);
}

const COLUMNS =
  'endpoint_id, lane, state, released, replay, delivery_day, delivery_id, event_day, event_uuid';
const UNNEST = `unnest(?::text[], ?::date[], ?::uuid[], ?::date[], ?::uuid[])
  with ordinality as d (lane, delivery_day, delivery_id, event_day, event_uuid, n)`;

function columnArrays(deliveries: readonly ReplayDelivery[]): Binding[] {
  return [
    deliveries.map((d) => d.lane),
    deliveries.map((d) => d.deliveryDay),
    deliveries.map((d) => d.deliveryId),
    deliveries.map((d) => d.eventDay),
    deliveries.map((d) => d.eventUuid),
  ];
}

/** By the rules of delivery-queue.ts: the insert becomes the head of its lane, or locks the one that is there. */
async function insertHeads(
  trx: Transaction,
  endpointId: string,
  heads: readonly ReplayDelivery[],
): Promise<Set<string>> {
  const rows = await query<{ delivery_id: string }>(
    trx,
    `insert into delivery_queue (${COLUMNS})
     select ?::bigint, lane, 'due', true, true, delivery_day, delivery_id, event_day, event_uuid
       from ${UNNEST}
      order by lane
     on conflict (endpoint_id, lane) where state <> 'queued' do update set lane = excluded.lane
     returning delivery_id`,
    [endpointId, ...columnArrays(heads)],
  );
  return new Set(rows.map((row) => row.delivery_id));
}

async function insertBehind(
  trx: Transaction,
  endpointId: string,
  deliveries: readonly ReplayDelivery[],
): Promise<void> {
  await execute(
    trx,
    `insert into delivery_queue (${COLUMNS})
     select ?::bigint, lane, 'queued', true, true, delivery_day, delivery_id, event_day, event_uuid
       from ${UNNEST}
      order by n`,
    [endpointId, ...columnArrays(deliveries)],
  );
}

/** Deliveries of a replay that are still in the queue. */
export async function openReplayDeliveries(
  database: Database,
  replay: Replay,
): Promise<{ endpointId: string; deliveryId: string }[]> {
  return await query(
    database,
    `select q.endpoint_id as "endpointId", q.delivery_id as "deliveryId" from ${OPEN_OF_REPLAY}`,
    openBindings(replay),
  );
}

/** Whether something of a replay is in the queue, paused or not. */
export async function hasOpenDeliveries(
  database: Database,
  replay: Replay,
  { heldOnly }: { heldOnly: boolean },
): Promise<boolean> {
  const condition = heldOnly ? 'and not q.released' : '';
  const text = `select 1 from ${OPEN_OF_REPLAY} ${condition} limit 1`;
  return (await query(database, text, openBindings(replay))).length > 0;
}

/** Which of these deliveries are still in the queue. */
export async function stillQueued(database: Database, deliveryIds: readonly string[]): Promise<string[]> {
  const rows = await query<{ delivery_id: string }>(
    database,
    'select delivery_id from delivery_queue where delivery_id = any (?::uuid[])',
    [deliveryIds],
  );
  return rows.map((row) => row.delivery_id);
}

/**
 * By id, so that the queue is looked into by its index whatever the statistics say: while they are stale, a join is
 * planned as a look at the whole queue for each delivery.
 */
const OPEN_OF_REPLAY = `delivery_queue q
  where q.replay and q.delivery_id = any (array(
    select id from deliveries where replay_id = :replayId and state = 'pending'
       and day >= (cast(:createdAt as timestamptz) at time zone 'utc')::date))`;

function openBindings(replay: Replay): Record<string, Binding> {
  return { replayId: replay.id, createdAt: replay.createdAt };
}

/** Rows changed at once; also how many are passed over at most because somebody else has them at the moment. */
const SWEEP_ROWS = 10_000;

/**
 * Brings what a locked replay has in the queue into line with its state: while it is paused nothing of it can be
 * claimed, and once it is cancelled nothing waits for another attempt. What is being attempted is left alone, as
 * are rows that somebody else has locked (waiting for them could deadlock), so it is to be repeated.
 * Returns how many of its rows this changed.
 */
export async function applyReplayState(trx: Transaction, replay: Replay): Promise<number> {
  for (let changed = 0; ; ) {
    const rows = await execute(trx, SWEEPS[replay.state], { ...openBindings(replay), limit: SWEEP_ROWS });
    changed += rows;
    if (rows < SWEEP_ROWS) {
      if (changed > 0) await execute(trx, `select pg_notify('heliograph_deliveries', '')`);
      return changed;
    }
  }
}

/** Rows to change, found and locked without waiting. */
function lockOpen(condition: string): string {
  return `select q.position from ${OPEN_OF_REPLAY} and ${condition} limit :limit for update skip locked`;
}

const RELEASE = `update delivery_queue
    set released = true, state = case when state = 'held' then 'due' else state end
  where position = any (array(${lockOpen('not q.released')}))`;

const SWEEPS: Record<Replay['state'], string> = {
  running: RELEASE,
  done: RELEASE,
  paused: `update delivery_queue
      set released = false, state = case when state = 'due' then 'held' else state end
    where position = any (array(${lockOpen(`q.released and q.state in ('queued', 'due')`)}))`,
  cancelled: `with removed as (
      delete from delivery_queue where position = any (array(${lockOpen(`q.state <> 'claimed'`)}))
      returning delivery_day, delivery_id, attempts
    )
    update deliveries d
       set state = 'dropped', attempts = removed.attempts, last_error = 'given up: the replay was cancelled',
           next_attempt_at = null, finished_at = clock_timestamp()
      from removed where d.day = removed.delivery_day and d.id = removed.delivery_id`,
};
