import type { Logger } from '../../platform/logger.ts';
import type { Database } from '../../platform/postgres/database.ts';
import {
  changePartition,
  DAY_COLUMNS,
  type DailyTable,
  inBatches,
  isLockTimeout,
  TABLE_LOCK_TIMEOUT_MS,
} from '../../platform/postgres/partitions.ts';
import { execute, query } from '../../platform/postgres/sql.ts';

/** For how many days each is kept; 0: for ever. */
export type RetentionDays = {
  /** Bodies as upstream sent them. */
  inbox: number;
  /** Events and the log of their deliveries. */
  events: number;
  /** Attempts with their responses; never longer than the deliveries. */
  attempts: number;
};

type Tools = { database: Database; logger: Logger };

/** Attempts to get a table for a tenth of a second; after them the day waits for the next turn. */
const TRIES = 10;
const PAUSE_MS = 200;

/** Upstream may still send a status of a message that is so old, and its number must follow the last one. */
const LEAST_KEY_DAYS = 60;

/** Days that are past their time and stay, because others hold their table. */
class TablesInUse extends Error {}

/**
 * Drops whole days that are past their time, except what something open still needs; forgets ordering keys likewise.
 * Throws TablesInUse at the end when a day could not be dropped. Once `ending` is aborted, the rest is left.
 */
export async function applyRetention(
  tools: Tools,
  days: RetentionDays,
  ending: AbortSignal = new AbortController().signal,
): Promise<void> {
  const { inbox, events } = days;
  const attempts = events === 0 ? days.attempts : Math.min(days.attempts || events, events);
  const kept = Object.entries({ inbox, attempts, deliveries: events, events }) as [DailyTable, number][];
  const limited = kept.filter(([, keepDays]) => keepDays > 0);
  const left: string[] = [];
  // Whole days first: they free the most.
  for (const [table, keepDays] of limited) left.push(...(await dropOldDays(tools, table, keepDays, ending)));
  const { database } = tools;
  for (const [table, keepDays] of limited)
    await inBatches((limit) => clearDefaultPartition(database, table, keepDays, limit), ending);
  const keyDays = Math.max(events, LEAST_KEY_DAYS);
  if (events > 0) await inBatches((limit) => forgetOldOrderingKeys(database, keyDays, limit), ending);
  if (left.length > 0) throw new TablesInUse(`others hold the tables of ${left.join(', ')}`);
}

async function dropOldDays(
  { database, logger }: Tools,
  table: DailyTable,
  keepDays: number,
  ending: AbortSignal,
): Promise<string[]> {
  const expired = await listExpiredDays(database, table, keepDays);
  const inUse = await listDaysInUse(database, table, expired);
  const left: string[] = [];
  for (const day of expired) {
    if (ending.aborted) break;
    if (inUse.has(day)) continue;
    const outcome = await dropWhenFree(database, table, day);
    if (outcome === 'dropped') logger.info({ table, day }, 'a day past its retention was dropped');
    if (outcome === 'busy') left.push(`${table} ${day}`);
  }
  return left;
}

async function dropWhenFree(database: Database, table: DailyTable, day: string): Promise<DropOutcome> {
  for (let tries = 1; ; tries += 1) {
    const outcome = await dropDay(database, table, day);
    if (outcome !== 'busy' || tries === TRIES) return outcome;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Days (YYYY-MM-DD) of a table that ended more than `keepDays` days ago, the oldest first. */
async function listExpiredDays(database: Database, table: DailyTable, keepDays: number): Promise<string[]> {
  const rows = await query<{ day: string }>(
    database,
    `select day from (
       select to_date(right(c.relname, 8), 'YYYYMMDD') as day
         from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = cast(:table as regclass) and c.relname ~ :pattern) as days
      where day < (now() at time zone 'utc')::date - cast(:keepDays as integer)
      order by day`,
    { table, pattern: `^${table}_[0-9]{8}$`, keepDays },
  );
  return rows.map((row) => row.day);
}

const ROWS_AT_ONCE = 10_000;

/** Those of `days` that something open still needs: a body to be taken in, or a delivery that waits. */
export async function listDaysInUse(
  database: Database,
  table: DailyTable,
  days: readonly string[],
): Promise<Set<string>> {
  if (table === 'attempts' || days.length === 0) return new Set();
  if (table === 'inbox') return await listDaysOfOpenBodies(database, days);
  const open = await listDaysOfQueue(database, table === 'events' ? 'event_day' : 'delivery_day', days);
  // An order's event is not in the queue when no endpoint wants it; its workflow writes it all the same.
  const workflows = table === 'events' ? await listDaysOfWorkflows(database, days) : [];
  return new Set([...open, ...workflows]);
}

/** Each condition is that of an index: most bodies are done. */
const HAS_OPEN_BODY = `exists (select from inbox where received_day = d.day and state = 'new')
  or exists (select from inbox where received_day = d.day and state in ('quarantined', 'failed') and state = 'failed')
  or exists (select from waiting_bodies where received_day = d.day and not refused)`;

async function listDaysOfOpenBodies(database: Database, days: readonly string[]): Promise<Set<string>> {
  const rows = await query<{ day: string }>(
    database,
    `select d.day from unnest(cast(? as date[])) as d (day) where ${HAS_OPEN_BODY}`,
    [days],
  );
  return new Set(rows.map((row) => row.day));
}

/**
 * Goes over the queue from the oldest on, in portions: however much waits, no statement takes long. It ends early once
 * all of `days` are found, which are old. Only a replay adds to an old day later; whose event is gone by then, it finds
 * nothing to send.
 */
async function listDaysOfQueue(
  database: Database,
  column: 'event_day' | 'delivery_day',
  days: readonly string[],
): Promise<Set<string>> {
  const wanted = new Set(days);
  const found = new Set<string>();
  for (let after: string | null = '0'; after !== null && found.size < wanted.size; ) {
    const [page]: QueuePage[] = await query<QueuePage>(
      database,
      `select array_agg(distinct cast(day as text)) as days, max(position) as last, count(*)::integer as rows
         from (select position, ${column} as day from delivery_queue
                where position > cast(? as bigint) order by position limit ${ROWS_AT_ONCE}) as page`,
      [after],
    );
    for (const day of page?.days ?? []) if (wanted.has(day)) found.add(day);
    after = page?.rows === ROWS_AT_ONCE ? page.last : null;
  }
  return found;
}

type QueuePage = { days: string[] | null; last: string | null; rows: number };

async function listDaysOfWorkflows(database: Database, days: readonly string[]): Promise<string[]> {
  const rows = await query<{ day: string }>(
    database,
    `select day from unnest(cast(? as date[])) as d (day)
      where day >= (select min(created_at) - interval '1 day' from workflow_tasks
                     where workflow_type <> 'refreshNumbers')`,
    [days],
  );
  return rows.map((row) => row.day);
}

/** `busy`: others hold the table; `in use`: something open has come to need the day. */
type DropOutcome = 'dropped' | 'busy' | 'in use';

/** Drops the partition of a day, unless it would have to wait for longer than a moment. */
export async function dropDay(database: Database, table: DailyTable, day: string): Promise<DropOutcome> {
  try {
    return await database.transaction(async (trx) => {
      await trx.raw(`set local lock_timeout = ${TABLE_LOCK_TIMEOUT_MS}`);
      await trx.raw(`lock table only ${table} in access exclusive mode`);
      // `admin inbox retry` may have put bodies back since the day was looked at.
      if (table === 'inbox' && (await listDaysOfOpenBodies(trx, [day])).has(day)) return 'in use';
      await changePartition(trx, 'drop', table, day);
      if (table === 'inbox') await execute(trx, 'delete from waiting_bodies where received_day = ?', [day]);
      return 'dropped';
    });
  } catch (error) {
    if (isLockTimeout(error)) return 'busy';
    throw error;
  }
}

/**
 * Removes up to `limit` rows of days that ended more than `keepDays` days ago from the default partition, which is never
 * dropped: it has what came while a day had no partition, and what processes with a wrong clock wrote. What something
 * open needs stays. Returns how many were removed.
 */
async function clearDefaultPartition(
  database: Database,
  table: DailyTable,
  keepDays: number,
  limit: number,
): Promise<number> {
  const column = DAY_COLUMNS[table];
  const days = await listDefaultDays(database, table, keepDays);
  const inUse = await listDaysInUse(database, table, days);
  const free = days.filter((day) => !inUse.has(day));
  if (free.length === 0) return 0;
  const isDone = table === 'inbox' ? `and state in ('done', 'quarantined')` : '';
  return await execute(
    database,
    `delete from ${table}_default where ctid = any (array(
       select ctid from ${table}_default where ${column} = any (cast(? as date[])) ${isDone} limit ?)) ${isDone}`,
    [free, limit],
  );
}

/** Found by one look into the index of the days for each. */
async function listDefaultDays(database: Database, table: DailyTable, keepDays: number): Promise<string[]> {
  const column = DAY_COLUMNS[table];
  const rows = await query<{ day: string }>(
    database,
    `with recursive days as (
       (select ${column} as day from ${table}_default order by ${column} limit 1)
       union all
       select (select ${column} from ${table}_default where ${column} > days.day order by ${column} limit 1)
         from days where days.day is not null
     )
     select day from days where day < (now() at time zone 'utc')::date - cast(? as integer)`,
    [keepDays],
  );
  return rows.map((row) => row.day);
}

/**
 * Forgets up to `limit` ordering keys that had no event for `keepDays` days; returns how many. None while a delivery is
 * open for so long: numbers of its key may not begin anew before it is out.
 */
export async function forgetOldOrderingKeys(
  database: Database,
  keepDays: number,
  limit: number,
): Promise<number> {
  // Written out, so that the planner sees that few rows are so old and uses their index.
  const until = `(now() - ${Math.trunc(keepDays)} * interval '1 day')`;
  return await execute(
    database,
    `delete from ordering_keys
      where ctid = any (array(
              select ctid from ordering_keys
               where updated_at < ${until}
                 and coalesce((select created_at from delivery_queue order by position limit 1) >= ${until}, true)
               limit ?))
        and updated_at < ${until}`,
    [limit],
  );
}
