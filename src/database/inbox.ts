import { byteaArray } from './array-parameters.ts';
import type { Database, Transaction } from './database.ts';
import { execute, query } from './sql.ts';

/** Keeps raw upstream bodies, in the order given, and wakes the intake. One statement for all that wait. */
export async function insertBodies(database: Database, bodies: readonly Buffer[]): Promise<void> {
  await execute(
    database,
    `with stored as (
       insert into inbox (body) select body from unnest(?::bytea[]) with ordinality as b (body, n) order by n
       returning 1
     )
     select pg_notify('heliograph_inbox', '') from (select count(*) from stored) as s`,
    [byteaArray(bodies)],
  );
}

/** A part of a body that emitted nothing, and why. */
export type SetAsideNote = { path: string; reason: string };

/** `notes`: what was set aside when it was taken in before, null the first time. */
export type InboxBody = { day: string; id: string; body: Buffer; notes: SetAsideNote[] | null };

/** The oldest bodies not yet taken in, by id and never by a cursor: a lower id may become visible later. */
export async function takeNewBodies(
  trx: Transaction,
  limits: { bodies: number; bytes: number },
): Promise<InboxBody[]> {
  return await query<InboxBody>(
    trx,
    `select day, id, body, notes from (
       select received_day as day, id, body, notes,
              sum(octet_length(body)) over (order by id) - octet_length(body) as before
         from (select received_day, id, body, notes from inbox where state = 'new' order by id limit :bodies) as oldest
     ) as counted where before < :bytes order by id`,
    limits,
  );
}

export type InboxOutcome = {
  day: string;
  id: string;
  state: 'done' | 'set_aside' | 'waiting' | 'failed';
  notes: SetAsideNote[];
};

/** Marks bodies as taken in (or not), with what was set aside and why. */
export async function finishBodies(trx: Transaction, outcomes: readonly InboxOutcome[]): Promise<void> {
  const isPlain = (o: InboxOutcome) => o.state === 'done' && o.notes.length === 0;
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

async function finishNoted(trx: Transaction, outcomes: readonly InboxOutcome[]): Promise<void> {
  await execute(
    trx,
    `update inbox i set state = o.state, notes = o.notes, processed_at = now()
       from unnest(?::date[], ?::bigint[], ?::text[], ?::jsonb[]) as o (day, id, state, notes)
      where i.received_day = o.day and i.id = o.id`,
    [
      outcomes.map((o) => o.day),
      outcomes.map((o) => o.id),
      outcomes.map((o) => o.state),
      outcomes.map((o) => (o.notes.length === 0 ? null : JSON.stringify(o.notes))),
    ],
  );
}

export type SetAsideCount = { reason: string; field: string; wabaId: string; count: number };

/** Adds to the day's counts of what emitted no event. */
export async function countSetAside(trx: Transaction, counts: readonly SetAsideCount[]): Promise<void> {
  if (counts.length === 0) return;
  await execute(
    trx,
    `insert into set_aside_counts (day, reason, field, waba_id, count)
     select (now() at time zone 'utc')::date, reason, field, waba_id, count
       from unnest(?::text[], ?::text[], ?::text[], ?::bigint[]) as c (reason, field, waba_id, count)
     on conflict (day, reason, field, waba_id) do update set count = set_aside_counts.count + excluded.count`,
    [
      counts.map((c) => c.reason),
      counts.map((c) => c.field),
      counts.map((c) => c.wabaId),
      counts.map((c) => c.count),
    ],
  );
}

/** Per statement: rewriting a million bodies in one would take longer than a statement may. */
const RETRY_PAGE = 5_000;

/** Puts every body that was set aside or failed back before the intake, oldest first, with its notes; returns how many. */
export async function retryInbox(
  database: Database,
  states: readonly ('set_aside' | 'failed')[],
): Promise<number> {
  const pages = states.map(
    (state) => `(select received_day, id from inbox where state = '${state}' and id > :after
                  order by id limit ${RETRY_PAGE})`,
  );
  let changed = 0;
  for (let after: string | null = '0'; after !== null; ) {
    const [page]: { n: number; last: string | null }[] = await query(
      database,
      `with page as (
         select received_day, id from (${pages.join(' union all ')}) as waiting order by id limit ${RETRY_PAGE}
       ), changed as (
         update inbox i set state = 'new', processed_at = null
           from page p where i.received_day = p.received_day and i.id = p.id
       )
       select count(*)::integer as n, max(id) as last from page`,
      { after },
    );
    changed += page?.n ?? 0;
    after = page?.last ?? null;
    await execute(database, `select pg_notify('heliograph_inbox', '')`);
  }
  return changed;
}

/** Counting a backlog of millions would take longer than anybody waits for a figure. */
const COUNT_LIMIT = 100_000;

/**
 * How many bodies wait, were set aside, or failed; counting stops at 100,001 of each. Each condition is that of an
 * index: most bodies are done.
 */
export async function countInbox(database: Database): Promise<Record<string, number>> {
  const counted = ['new', 'set_aside', 'failed'].map(
    (state) => `select '${state}' as state, count(*)
       from (select 1 from inbox where state = '${state}' limit ${COUNT_LIMIT + 1}) as counted`,
  );
  const rows = await query<{ state: string; count: string }>(database, counted.join(' union all '));
  return Object.fromEntries(rows.map((row) => [row.state, Number(row.count)]));
}
