import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { BUFFER_DEFAULTS, BUFFER_LIMITS } from '../endpoint/buffer-limits.ts';
import { rowIs } from './states.ts';

/** Null `seconds`: its endpoint does not buffer any more, or is gone. */
export type BufferSettings = {
  seconds: number | null;
  maxSeconds: number | null;
  maxMessages: number | null;
};

/** Times are the database's, Unix time in ms. */
type BufferedHead = BufferSettings & { deliveryId: string; position: string; nowMs: number };

/** A row of a lane, the head first. */
export type LaneRow = {
  headId: string;
  deliveryId: string;
  deliveryDay: string;
  eventDay: string;
  eventUuid: string;
  released: boolean;
  queuedMs: number;
};

/** A head may be looked at again after no longer than this; a later time is of a clock that was set back since. */
const LONGEST_WAIT = `interval '${BUFFER_LIMITS.seconds + 1} seconds'`;

const LOOK_TIMES = ['is null', '<= now()', `between now() + ${LONGEST_WAIT} and timestamptz '9999-12-31'`];

const msOf = (time: string) => `cast(extract(epoch from ${time}) * 1000 as float8)`;

/** SQL: whether a head may have waited long enough: one look into an index that is mostly empty. */
export const HAS_BUFFERED_HEAD = LOOK_TIMES.map(
  (time) => `exists (select from delivery_queue where state = 'unreleased' and next_attempt_at ${time})`,
).join(' or ');

const LOOKS = LOOK_TIMES.map(
  (time) => `array(select ctid from delivery_queue
                    where state = 'unreleased' and next_attempt_at ${time}
                    order by next_attempt_at limit cast(:limit as integer) for update skip locked)`,
);

/**
 * Locks heads that may have waited long enough, so that nothing is queued behind them until the transaction ends. Heads whose event has
 * no body yet are among them.
 */
export async function lockBufferedHeads(trx: Transaction, limit: number): Promise<BufferedHead[]> {
  return await query<BufferedHead>(
    trx,
    `select q.delivery_id as "deliveryId", q.position, nullif(w.buffer_seconds, 0) as seconds,
            w.buffer_max_seconds as "maxSeconds", w.buffer_max_messages as "maxMessages", ${msOf('clock_timestamp()')} as "nowMs"
       from delivery_queue q left join webhook_endpoints w on w.id = q.endpoint_id
      where q.ctid = any (${LOOKS.join(' || ')}) and ${rowIs('unreleased', 'q')}`,
    { limit },
  );
}

/** The beginning of the lanes of these heads. The heads have been locked by an earlier statement, so that this one sees all behind them. */
export async function readLanes(trx: Transaction, positions: readonly string[]): Promise<LaneRow[]> {
  return await query<LaneRow>(
    trx,
    `select h.delivery_id as "headId", r.delivery_id as "deliveryId", r.delivery_day as "deliveryDay", r.event_day as "eventDay",
            r.event_uuid as "eventUuid", r.released,
            ${msOf('r.created_at')} as "queuedMs"
       from delivery_queue h
      cross join lateral (
        (select * from delivery_queue where position = h.position)
        union all
        (select * from delivery_queue b
          where (b.endpoint_id, b.lane, b.position) > (h.endpoint_id, h.lane, h.position)
            and (b.endpoint_id, b.lane) <= (h.endpoint_id, h.lane) and b.state = 'queued'
          order by b.endpoint_id, b.lane, b.position limit ${BUFFER_LIMITS.messages})) as r
      where h.position = any (cast(:positions as bigint[]))
      order by h.position, r.position`,
    { positions },
  );
}

export type BufferVerdict =
  /** Looked at again at this time, or when something is queued behind it. Infinity: what gives the event its body releases it. */
  | { kind: 'wait'; lookMs: number }
  /** So many of the lane go out together. */
  | { kind: 'go'; count: number }
  /** So many of the lane go one after the other. */
  | { kind: 'apart'; count: number };

/**
 * Decides about a lane whose head is buffered. `bytes`: of the body of each event; absent: it has none yet. What is queued
 * behind the buffered ones, and is not buffered or has no room with them, ends their wait. A message from the future was queued before a clock was set back.
 */
export function judgeBuffer(
  rows: readonly Pick<LaneRow, 'eventUuid' | 'released' | 'queuedMs'>[],
  bytes: ReadonlyMap<string, number>,
  { seconds, maxSeconds, maxMessages, nowMs }: BufferSettings & { nowMs: number },
): BufferVerdict {
  const most = maxMessages ?? BUFFER_DEFAULTS.messages;
  const count = countTogether(rows, bytes, most);
  const [first] = rows;
  const last = rows.at(-1);
  if (count === 0 || first === undefined || last === undefined)
    return { kind: 'wait', lookMs: Number.POSITIVE_INFINITY };
  if (seconds === null) return { kind: 'apart', count };
  if (count < rows.length || count === most) return { kind: 'go', count };
  const longest =
    maxSeconds ?? Math.min(BUFFER_LIMITS.maxSeconds, seconds * BUFFER_DEFAULTS.maxSecondsFactor);
  const lookMs = Math.min(last.queuedMs + seconds * 1_000, first.queuedMs + longest * 1_000);
  const isOver = lookMs <= nowMs || last.queuedMs > nowMs;
  return isOver ? { kind: 'go', count } : { kind: 'wait', lookMs };
}

function countTogether(
  rows: readonly Pick<LaneRow, 'eventUuid' | 'released'>[],
  bytes: ReadonlyMap<string, number>,
  most: number,
): number {
  let sum = 0;
  for (const [index, { eventUuid, released }] of rows.entries()) {
    const size = bytes.get(eventUuid);
    if (index === most || released || size === undefined) return index;
    sum += size;
    if (index > 0 && sum > BUFFER_LIMITS.bytes) return index;
  }
  return rows.length;
}

export async function waitOn(
  trx: Transaction,
  waits: readonly { deliveryId: string; lookMs: number }[],
): Promise<void> {
  if (waits.length === 0) return;
  await execute(
    trx,
    `update delivery_queue q set next_attempt_at = to_timestamp(w.look_ms / 1000)
       from unnest(:deliveryId::uuid[], :lookMs::float8[]) as w (delivery_id, look_ms)
      where q.delivery_id = w.delivery_id and q.delivery_id = any (:deliveryId::uuid[])`,
    columnsOf(waits, 'deliveryId', 'lookMs'),
  );
}

/** One delivery of a batch; `place` counts from 1. */
export type BatchMember = Omit<LaneRow, 'released' | 'queuedMs'> & { headDay: string; place: number };

/**
 * Makes heads due, and lets what is behind them follow. The heads of batches, of which the event is stored, send it instead of the event that they had,
 * and the others of the batch leave the queue: the log says what they go out with.
 */
export async function releaseBuffered(
  trx: Transaction,
  deliveryIds: readonly string[],
  members: readonly BatchMember[],
): Promise<void> {
  await execute(
    trx,
    `update delivery_queue
        set released = true, state = case when state = 'unreleased' then 'due' else state end, next_attempt_at = null
      where delivery_id = any (cast(:deliveryIds as uuid[])) and not released`,
    { deliveryIds },
  );
  if (members.length === 0) return;
  await execute(
    trx,
    `with members as materialized (
       select * from unnest(:headId::uuid[], :deliveryId::uuid[], :place::integer[]) as m (head_id, id, place)
     ), joined as (
       delete from delivery_queue where delivery_id = any (array(select id from members where place > 1))
     ), logged as (
       update deliveries d set batch_id = m.head_id
         from members m
        where d.id = m.id and d.id = any (:deliveryId::uuid[]) and d.day = any (cast(:days as date[]))
     )
     update delivery_queue q
        set event_day = q.delivery_day, event_uuid = q.delivery_id,
            batch = array(select id from members where head_id = q.delivery_id order by place)
      where q.delivery_id = any (array(select id from members where place = 1))`,
    {
      ...columnsOf(members, 'headId', 'deliveryId', 'place'),
      days: [...new Set(members.map(({ deliveryDay }) => deliveryDay))],
    },
  );
}
