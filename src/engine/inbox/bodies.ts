import { byteaArray } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, hasRow, query } from '../../platform/postgres/sql.ts';
import { HELD_SHARDS } from './intake-lock.ts';
import { shardOf } from './shards.ts';

/** A body with the WABAs for which the app secret that signed it may speak; null: for all. */
export type SignedBody = { body: Buffer; signedFor: readonly string[] | null };

export type NewBody = SignedBody & { wabaId: string; shard: number };

/** Stores bodies that wait for intake, in the order given. */
export async function insertParts(database: Database, parts: readonly NewBody[]): Promise<void> {
  await execute(
    database,
    `insert into inbox (waba_id, shard, body, signed_for)
     select waba_id, shard, body, string_to_array(signed_for, '+')
       from unnest(:bodyWabas::text[], :bodyShards::smallint[], :rawBodies::bytea[], :signedFor::text[])
            with ordinality as b (waba_id, shard, body, signed_for, n)
      order by n`,
    bodyColumns(parts),
  );
}

export function bodyColumns(bodies: readonly NewBody[]) {
  return {
    bodyWabas: bodies.map(({ wabaId }) => wabaId),
    bodyShards: bodies.map(({ shard }) => shard),
    rawBodies: byteaArray(bodies.map(({ body }) => body)),
    signedFor: bodies.map(({ signedFor }) => signedFor?.join('+') ?? null),
  };
}

export function wakeIntake(database: Database, shards: readonly number[]): void {
  database.notify('heliograph_inbox', [...new Set(shards)].join(','));
}

export type QuarantineNote = { path: string; reason: string };

/** How far a body that needs several transactions is ingested, and what was quarantined of its items so far. */
type PartlyTaken = { until: string; notes: QuarantineNote[] };

export type InboxBody = NewBody & {
  day: string;
  id: string;
  /** The items that were quarantined when it was ingested before, null the first time. */
  notes: QuarantineNote[] | null;
  partly: PartlyTaken | null;
};

const BODY_COLUMNS =
  'received_day as day, id, shard, waba_id as "wabaId", body, signed_for as "signedFor", notes, partly, octet_length(body) as bytes';

export type ShardLook = {
  shard: number;
  fromId: string;
  /** No body that may wait from `fromId` on is older (YYYY-MM-DD or `-infinity`); spares the partitions of days before. */
  fromDay: string;
};

/** `-infinity` sorts before every day. */
export function lookColumns(looks: readonly ShardLook[]) {
  const shards = looks.map(({ shard }) => shard);
  const [fromDay = '-infinity'] = looks.map((look) => look.fromDay).toSorted();
  return { shards, fromIds: looks.map(({ fromId }) => fromId), fromDay };
}

/**
 * Of each shard the oldest bodies not yet ingested, all by id. `fromId` is no cursor: a lower id may become visible
 * later. Nothing of shards whose lock was not got by the statement before.
 */
export async function takeNewBodies(
  trx: Transaction,
  looks: readonly ShardLook[],
  { bodies, bytes }: { bodies: number; bytes: number },
): Promise<InboxBody[]> {
  return await query<InboxBody>(
    trx,
    `select own.day, own.id, own.shard, own."wabaId", own.body, own."signedFor", own.notes, own.partly
       from unnest(cast(:shards as integer[]), cast(:fromIds as bigint[])) as look (shard, from_id)
      cross join lateral (
        select *, sum(bytes) over (order by id) - bytes as before from (
          select ${BODY_COLUMNS} from inbox
           where received_day >= cast(:fromDay as date) and state = 'new' and shard = look.shard
             and id >= look.from_id order by shard, id limit :bodies
        ) as oldest
      ) as own
      where look.shard = any (${HELD_SHARDS}) and own.before < :bytes order by own.id`,
    { ...lookColumns(looks), bodies, bytes },
  );
}

/** SQL: whether a body of today or yesterday waits for intake. Of older ones the looks of intake know. */
export const HAS_BODIES = `exists (select from inbox where state = 'new' and received_day >= current_date - 1)`;

/** The oldest body of each shard that is not yet ingested, and for how long it has waited. Takes no lock. */
export async function findOldestBodies(
  database: Database,
  looks: readonly ShardLook[],
): Promise<{ shard: number; id: string; day: string; waitedMs: number }[]> {
  return await query(
    database,
    `select look.shard, oldest.id, oldest.day,
            cast(extract(epoch from now() - oldest.received_at) * 1000 as double precision) as "waitedMs"
       from unnest(cast(:shards as integer[]), cast(:fromIds as bigint[])) as look (shard, from_id)
      cross join lateral (select id, received_day as day, received_at from inbox
                           where received_day >= cast(:fromDay as date) and state = 'new' and shard = look.shard
                             and id >= look.from_id
                           order by shard, id limit 1) as oldest`,
    lookColumns(looks),
  );
}

/** How much is read of a backlog: of so many WABAs behind `afterWabaId` their oldest bodies, from `fromId` on. */
export type BacklogLimits = ShardLook & {
  afterWabaId: string;
  wabas: number;
  bodiesPerWaba: number;
  bytesPerWaba: number;
  bytes: number;
};

/**
 * As `takeNewBodies` for one shard, but the oldest of each WABA: no WABA stands behind another's backlog. The WABAs are found
 * by a skip scan of their index. Ordered by WABA; what does not fit is at the end.
 */
export async function takeNewBodiesByWaba(trx: Transaction, limits: BacklogLimits): Promise<InboxBody[]> {
  return await query<InboxBody>(
    trx,
    `with recursive owner (waba_id, n) as (
       (select waba_id, 1 from inbox
         where received_day >= cast(:fromDay as date)
           and state = 'new' and shard = cast(:shard as smallint) and waba_id > cast(:afterWabaId as text)
           and id >= cast(:fromId as bigint) and :shard = any (${HELD_SHARDS})
         order by shard, waba_id limit 1)
       union all
       select (select i.waba_id from inbox i
                where i.received_day >= cast(:fromDay as date) and i.state = 'new' and i.shard = cast(:shard as smallint) and i.waba_id > owner.waba_id
                  and i.id >= cast(:fromId as bigint)
                order by i.shard, i.waba_id limit 1), n + 1
         from owner where owner.waba_id is not null and n < cast(:wabas as integer)
     )
     select day, id, shard, "wabaId", body, "signedFor", notes, partly from (
       select own.*, sum(bytes) over (order by "wabaId", id) - bytes as before
         from owner cross join lateral (
           select * from (
             select *, sum(bytes) over (order by id) - bytes as before_own from (
               select ${BODY_COLUMNS} from inbox
                where received_day >= cast(:fromDay as date)
                  and state = 'new' and shard = cast(:shard as smallint) and waba_id = owner.waba_id
                  and id >= cast(:fromId as bigint)
                order by shard, waba_id, id limit :bodiesPerWaba
             ) as oldest
           ) as counted where before_own < :bytesPerWaba
         ) as own
     ) as all_bodies where before < :bytes order by "wabaId", id`,
    limits,
  );
}

export type InboxOutcome = {
  day: string;
  id: string;
  /** `new`: the rest of it is left for later turns. */
  state: 'new' | 'done' | 'quarantined' | 'waiting' | 'failed';
  notes: QuarantineNote[] | null;
  partly: PartlyTaken | null;
};

export async function finishBodies(trx: Transaction, outcomes: readonly InboxOutcome[]): Promise<void> {
  const isPlain = (o: InboxOutcome) => o.state === 'done' && !hasNotes(o);
  const plain = outcomes.filter(isPlain);
  const noted = outcomes.filter((o) => !isPlain(o));
  for (const day of new Set(plain.map((o) => o.day))) {
    await execute(
      trx,
      `update inbox set state = 'done', notes = null, processed_at = now() where received_day = :day and id = any (:ids::bigint[])`,
      { day, ids: plain.filter((o) => o.day === day).map((o) => o.id) },
    );
  }
  if (noted.length > 0) await finishNoted(trx, noted);
}

function hasNotes({ notes }: InboxOutcome): boolean {
  return notes !== null && notes.length > 0;
}

async function finishNoted(trx: Transaction, outcomes: readonly InboxOutcome[]): Promise<void> {
  await execute(
    trx,
    `update inbox i set state = o.state, notes = o.notes, partly = o.partly,
                        processed_at = case when o.state <> 'new' then now() end
       from unnest(:daies::date[], :ids::bigint[], :states::text[], :notes::jsonb[], :partlies::jsonb[]) as o (day, id, state, notes, partly)
      where i.received_day = o.day and i.id = o.id`,
    {
      daies: outcomes.map((o) => o.day),
      ids: outcomes.map((o) => o.id),
      states: outcomes.map((o) => o.state),
      notes: outcomes.map((o) => (hasNotes(o) ? JSON.stringify(o.notes) : null)),
      partlies: outcomes.map((o) => (o.partly === null ? null : JSON.stringify(o.partly))),
    },
  );
}

/** Deletes bodies, also those that wait. */
export async function deleteBodies(trx: Transaction, day: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  const which = 'received_day = :day and id = any (:ids::bigint[])';
  await execute(trx, `delete from waiting_bodies where ${which.replace('id =', 'inbox_id =')}`, { day, ids });
  await execute(trx, `delete from inbox where ${which}`, { day, ids });
}

export async function replaceBodies(
  trx: Transaction,
  day: string,
  cut: readonly { id: string; rest: Buffer }[],
): Promise<void> {
  const text = 'update inbox set body = :rest where received_day = :day and id = :id';
  for (const { id, rest } of cut) await execute(trx, text, { rest, day, id });
}

/** Puts those bodies back before intake that are still in one of these states; returns how many. */
export async function putBack(
  trx: Transaction,
  bodies: readonly { day: string; id: string }[],
  states: readonly string[],
): Promise<number> {
  return await execute(
    trx,
    `update inbox i set state = 'new', partly = null, processed_at = null
       from unnest(:daies::date[], :ids::bigint[]) as p (day, id)
      where i.received_day = p.day and i.id = p.id and i.state = any (:states::text[])`,
    { daies: bodies.map(({ day }) => day), ids: bodies.map(({ id }) => id), states },
  );
}

/** Whether intake has still to ingest a body of the WABA that came by then. */
export async function hasNewBodies(database: Database, wabaId: string, until: Date): Promise<boolean> {
  return await hasRow(
    database,
    `select 1 from inbox
      where state = 'new' and shard = :shard and waba_id = :wabaId and received_at <= :until limit 1`,
    { shard: shardOf(wabaId), wabaId, until },
  );
}
