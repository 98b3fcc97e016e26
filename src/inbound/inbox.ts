import { crc32 } from 'node:zlib';
import { items, member, sourceOf } from '../platform/json/json-text.ts';
import type { Database, Transaction } from '../platform/postgres/database.ts';
import { HELD_SHARDS } from '../platform/postgres/locks.ts';
import { byteaArray, execute, query } from '../platform/postgres/sql.ts';
import { wabaIdOf } from './split/item-context.ts';
import { upstreamRootOf } from './split/upstream-items.ts';

/** Into how many parts intake is divided. Bodies that wait were stored by this number: it does not change. */
const SHARD_COUNT = 16;

/** All of them. */
export const SHARDS: readonly number[] = Array.from({ length: SHARD_COUNT }, (_, shard) => shard);

/** The part of intake that a WABA is in: every ordering key lives in one WABA, so order holds within each. */
export function shardOf(wabaId: string): number {
  return crc32(wabaId) % SHARD_COUNT;
}

/** A body with the WABAs for which the app secret that signed it may speak; null: for all. */
export type SignedBody = { body: Buffer; signedFor: readonly string[] | null };

/**
 * Keeps some of the bodies and takes them in in one transaction; the others, and those unless `isKept`, which never
 * rejects, are to be kept the usual way. What is committed all the same then counts once, by its deduplication keys.
 * `onSent` is called when all of its statements are sent: later bodies may be given from then on, and wait in the database
 * for what they have to wait for. `stored` resolves when all of these bodies are kept in either way: until then no later one
 * of their shards overtakes those that are kept the usual way.
 */
export type KeepAtOnce = (
  bodies: readonly SignedBody[],
  onSent: () => void,
  stored?: Promise<unknown>,
) => {
  usual: readonly SignedBody[];
  tried: readonly SignedBody[];
  isKept: Promise<boolean>;
};

/**
 * Keeps raw upstream bodies, in the order given, and wakes the intake of their shards. One statement for all that wait. A
 * body is kept as it is, unless its entries are of several WABAs: then as one body for each (docs/decisions/0037).
 */
export async function insertBodies(
  database: Database,
  bodies: readonly (Buffer | SignedBody)[],
): Promise<void> {
  const given = newBodies(bodies.map((body) => (Buffer.isBuffer(body) ? { body, signedFor: null } : body)));
  await insertParts(database, given, 'new');
  wakeIntake(
    database,
    given.map(({ shard }) => shard),
  );
}

/** A body, or what of it is one WABA's, with the shard that it is in. */
export type NewBody = SignedBody & { wabaId: string; shard: number };

/** Splits bodies by WABA. */
export function newBodies(bodies: readonly SignedBody[]): NewBody[] {
  return bodies.flatMap(({ body: whole, signedFor }) =>
    splitByWaba(whole).map(({ wabaId, body }) => {
      const known = wabaId ?? NOBODY;
      return { wabaId: known, shard: shardOf(known), body, signedFor };
    }),
  );
}

/** Keeps bodies that the same transaction takes in. */
export async function insertTakenIn(trx: Transaction, bodies: readonly NewBody[]): Promise<void> {
  await insertParts(trx, bodies, 'done');
}

async function insertParts(
  database: Database,
  parts: readonly NewBody[],
  state: 'new' | 'done',
): Promise<void> {
  await execute(
    database,
    `insert into inbox (waba_id, shard, body, signed_for, state, processed_at)
     select waba_id, shard, body, string_to_array(signed_for, '+'), ?, case when cast(? as boolean) then now() end
       from unnest(?::text[], ?::smallint[], ?::bytea[], ?::text[])
            with ordinality as b (waba_id, shard, body, signed_for, n)
      order by n`,
    [
      ...[state, state === 'done'],
      parts.map(({ wabaId }) => wabaId),
      parts.map(({ shard }) => shard),
      byteaArray(parts.map(({ body }) => body)),
      parts.map(({ signedFor }) => signedFor?.join('+') ?? null),
    ],
  );
}

/** Has workers look for bodies of these shards. */
export function wakeIntake(database: Database, shards: readonly number[]): void {
  database.notify('heliograph_inbox', [...new Set(shards)].join(','));
}

/** In place of the WABA of a body that does not say it. */
const NOBODY = '0';

/** A part of a body that emitted nothing, and why. */
export type QuarantineNote = { path: string; reason: string };

/** How far a body is taken in that takes several transactions, and what was quarantined of its items so far. */
type PartlyTaken = { until: string; notes: QuarantineNote[] };

export type InboxBody = {
  day: string;
  id: string;
  shard: number;
  wabaId: string;
  body: Buffer;
  signedFor: readonly string[] | null;
  /** What was quarantined when it was taken in before, null the first time. */
  notes: QuarantineNote[] | null;
  partly: PartlyTaken | null;
};

const BODY_COLUMNS =
  'received_day as day, id, shard, waba_id as "wabaId", body, signed_for as "signedFor", notes, partly, octet_length(body) as bytes';

/** Where looks for the bodies of a shard begin. */
export type ShardLook = {
  shard: number;
  fromId: string;
  /** No body that may wait from `fromId` on is older (YYYY-MM-DD or `-infinity`); spares the partitions of days before. */
  fromDay: string;
};

/** The day from which on a statement about all of these shards looks. */
function firstDayOf(looks: readonly ShardLook[]): string {
  return looks.map(({ fromDay }) => fromDay).toSorted()[0] ?? '-infinity';
}

function parametersOf(looks: readonly ShardLook[]) {
  const shards = looks.map(({ shard }) => shard);
  return { shards, fromIds: looks.map(({ fromId }) => fromId), fromDay: firstDayOf(looks) };
}

/**
 * Of each shard the oldest bodies not yet taken in, all by id. `fromId` is no cursor: a lower id may become visible
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
    { ...parametersOf(looks), bodies, bytes },
  );
}

/** The oldest body of each shard that is not yet taken in, and for how long it has waited. Takes no lock. */
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
    parametersOf(looks),
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

/** Marks bodies as taken in (or not), with what was quarantined and why. */
export async function finishBodies(trx: Transaction, outcomes: readonly InboxOutcome[]): Promise<void> {
  const isPlain = (o: InboxOutcome) => o.state === 'done' && !hasNotes(o);
  const plain = outcomes.filter(isPlain);
  const noted = outcomes.filter((o) => !isPlain(o));
  for (const day of new Set(plain.map((o) => o.day))) {
    await execute(
      trx,
      `update inbox set state = 'done', notes = null, processed_at = now() where received_day = ? and id = any (?::bigint[])`,
      [day, plain.filter((o) => o.day === day).map((o) => o.id)],
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
       from unnest(?::date[], ?::bigint[], ?::text[], ?::jsonb[], ?::jsonb[]) as o (day, id, state, notes, partly)
      where i.received_day = o.day and i.id = o.id`,
    [
      outcomes.map((o) => o.day),
      outcomes.map((o) => o.id),
      outcomes.map((o) => o.state),
      outcomes.map((o) => (hasNotes(o) ? JSON.stringify(o.notes) : null)),
      outcomes.map((o) => (o.partly === null ? null : JSON.stringify(o.partly))),
    ],
  );
}

export type QuarantineCount = { reason: string; field: string; wabaId: string; count: number };

/** Adds to the day's counts of what emitted no event. */
export async function countQuarantined(trx: Transaction, counts: readonly QuarantineCount[]): Promise<void> {
  if (counts.length === 0) return;
  await execute(
    trx,
    `insert into quarantine_counts (day, reason, field, waba_id, count)
     select (now() at time zone 'utc')::date, reason, field, waba_id, count
       from unnest(?::text[], ?::text[], ?::text[], ?::bigint[]) as c (reason, field, waba_id, count)
     on conflict (day, reason, field, waba_id) do update set count = quarantine_counts.count + excluded.count`,
    [
      counts.map((c) => c.reason),
      counts.map((c) => c.field),
      counts.map((c) => c.wabaId),
      counts.map((c) => c.count),
    ],
  );
}

/** A body, or what of it is one WABA's; null: it does not say whose. */
type WabaPart = { wabaId: string | null; body: Buffer };

/** How upstream begins a body: up to the changes of its first entry. */
const BEGINNING =
  /^\s*\{\s*"object"\s*:\s*"[^"\\]*"\s*,\s*"entry"\s*:\s*\[\s*\{\s*"id"\s*:\s*"(\d{1,64})"\s*,\s*"changes"/;
const BEGINNING_BYTES = 256;

/** What stands around the entries of a body, for each of its WABAs; of real ones it is half a line. */
const MAX_REPEATED_CHARS = 256;

/**
 * Splits a body by the WABAs of its entries, in the order in which each comes first. A body of one WABA, and one that
 * cannot be read, stays as it is, byte for byte.
 */
export function splitByWaba(body: Buffer): WabaPart[] {
  const only = onlyWaba(body);
  if (only !== null) return [{ wabaId: only, body }];
  const root = upstreamRootOf(body);
  const entryNode = member(root, 'entry');
  if (root === null || entryNode === null || entryNode.kind !== 'array') return [{ wabaId: null, body }];
  const byWaba = new Map<string | null, string[]>();
  for (const entry of items(entryNode)) {
    const wabaId = wabaIdOf(entry);
    const entries = byWaba.get(wabaId) ?? [];
    entries.push(sourceOf(entry));
    byWaba.set(wabaId, entries);
  }
  const [first] = byWaba.keys();
  if (byWaba.size <= 1) return [{ wabaId: first ?? null, body }];
  const text = sourceOf(root);
  const before = text.slice(0, entryNode.start - root.start);
  const after = text.slice(entryNode.end - root.start);
  // As many copies of something long as there are WABAs would be more than fits into memory.
  const isShort = before.length + after.length <= MAX_REPEATED_CHARS;
  return [...byWaba].map(([wabaId, entries], index) => {
    const [head, tail] = isShort || index === 0 ? [before, after] : ['{"entry":', '}'];
    return { wabaId, body: Buffer.from(`${head}[${entries.join(',')}]${tail}`) };
  });
}

/**
 * The WABA of a body with one entry in upstream's way of writing, without reading all of it. Within a JSON string the
 * second quote would be escaped, so where the name is not found again there is no other entry with changes.
 */
function onlyWaba(body: Buffer): string | null {
  const found = BEGINNING.exec(body.toString('latin1', 0, BEGINNING_BYTES));
  if (found?.[1] === undefined) return null;
  return body.indexOf('"changes"', found[0].length) < 0 ? found[1] : null;
}
