import type { Database, Transaction } from './database.ts';
import { isCheckViolation, isLockTimeout } from './error-class.ts';
import { isHeldForLong } from './long-holders.ts';
import { query, queryValue } from './sql.ts';

/** Tables with a partition per UTC day, named `<table>_YYYYMMDD`, and the column of the day. */
export const DAY_COLUMNS = {
  inbox: 'received_day',
  events: 'day',
  deliveries: 'day',
  attempts: 'day',
} as const;
export type DailyTable = keyof typeof DAY_COLUMNS;
export const DAILY_TABLES = Object.keys(DAY_COLUMNS) as DailyTable[];

const DAYS_AHEAD = 7;

/** A lock that is waited for makes all later statements on the table wait too, so not for long. */
export const TABLE_LOCK_TIMEOUT_MS = 100;
const TRIES = 3;

/** Rows of wrong clocks that are moved while the default partition cannot be read. A day with more stays there. */
const MOST_MOVED = 10_000;

/** A default partition that is read from end to end in a few milliseconds. */
const SMALL_BYTES = 16 * 1024 * 1024;

export type MissingPartition = { table: DailyTable; day: string; daysAhead: number; reason: string };

/**
 * Makes the daily partitions of today and the next week, each in its own transaction that waits for no lock longer
 * than a tenth of a second; returns those that are still missing. Rows of such a day go to the default partition.
 */
export async function ensurePartitions(database: Database): Promise<MissingPartition[]> {
  const missing: MissingPartition[] = [];
  for (const table of DAILY_TABLES) {
    let busy: string | null = null;
    for (const { day, daysAhead } of await listMissingDays(database, table)) {
      const reason: string | null = busy ?? (await makeWhenFree(database, table, day, daysAhead));
      if (reason === null) continue;
      missing.push({ table, day, daysAhead, reason });
      // Who holds the table for one day holds it for all.
      if (reason === IN_USE) busy = reason;
    }
  }
  return missing;
}

const MOST_COUNTED = 10_000;

/** Default partitions also have rows of days that were dropped, because something open needs them. */
const LATELY = "((now() at time zone 'utc')::date - 7)";

/**
 * How many rows of the last week or later default partitions have (counting stops at 10,001 per table), and for how many
 * days from today on every table has a partition.
 */
export async function readPartitions(database: Database): Promise<{ defaultRows: number; days: number }> {
  const counts = DAILY_TABLES.map(
    (table) => `(select count(*) from (select from ${table}_default
        where ${DAY_COLUMNS[table]} >= ${LATELY} limit ${MOST_COUNTED + 1}) as ${table})`,
  );
  const defaultRows = await queryValue<number>(database, `select (${counts.join(' + ')})::integer`);
  const missing = await Promise.all(DAILY_TABLES.map((table) => listMissingDays(database, table)));
  const days = Math.min(DAYS_AHEAD + 1, ...missing.flat().map(({ daysAhead }) => daysAhead));
  return { defaultRows: defaultRows ?? 0, days };
}

/** The name of the partition of a day (YYYY-MM-DD). */
export function partitionName(table: DailyTable, day: string): string {
  return `${table}_${day.replaceAll('-', '')}`;
}

const IN_USE = 'the table is in use';
const TOO_MANY = `more than ${MOST_MOVED} rows of the day are in the default partition: it stays there`;

async function listMissingDays(
  database: Database,
  table: DailyTable,
): Promise<{ day: string; daysAhead: number }[]> {
  return await query<{ day: string; daysAhead: number }>(
    database,
    `select (now() at time zone 'utc')::date + n as day, n as "daysAhead"
       from generate_series(0, ${DAYS_AHEAD}) as ahead (n)
      where not exists (select from pg_inherits where inhparent = cast(:table as regclass)
              and inhrelid = to_regclass(:table || to_char((now() at time zone 'utc')::date + n, '"_"YYYYMMDD')))
      order by n`,
    { table },
  );
}

/** Null once it is made. */
async function makeWhenFree(
  database: Database,
  table: DailyTable,
  day: string,
  daysAhead: number,
): Promise<string | null> {
  for (let tries = 1; ; tries += 1) {
    try {
      if (await isHeldForLong(database, [`${table}_default`])) return IN_USE;
      return await makePartition(database, table, day, daysAhead);
    } catch (error) {
      if (!isLockTimeout(error)) return error instanceof Error ? error.message : String(error);
      if (tries === TRIES) return IN_USE;
    }
  }
}

/**
 * Made apart and attached, which stops no statement on other days: only the default partition is taken
 * alone, because it may hold rows of the day. Those are moved.
 */
async function makePartition(
  database: Database,
  table: DailyTable,
  day: string,
  daysAhead: number,
): Promise<string | null> {
  if (daysAhead > 1 && !(await isDefaultSmall(database, table))) await keepOutOfDefault(database, table, day);
  return await database.transaction(async (trx) => {
    await waitBriefly(trx);
    await changePartition(trx, 'create', table, day);
    await trx.raw(`lock table ${table}_default in access exclusive mode`);
    if (!(await moveOutOfDefault(trx, table, day))) {
      await changePartition(trx, 'drop', table, day);
      return TOO_MANY;
    }
    await changePartition(trx, 'attach', table, day);
    await changePartition(trx, 'let in', table, day);
    return null;
  });
}

/** False when there are too many. */
async function moveOutOfDefault(trx: Transaction, table: DailyTable, day: string): Promise<boolean> {
  const column = DAY_COLUMNS[table];
  const ofDay = `from ${table}_default where ${column} = '${day}'`;
  const counting = `select count(*)::integer from (select 1 ${ofDay} limit ${MOST_MOVED + 1}) as found`;
  const found = (await queryValue<number>(trx, counting)) ?? 0;
  if (found > MOST_MOVED) return false;
  if (found === 0) return true;
  await trx.raw(
    `with moved as (delete ${ofDay} returning *) insert into ${partitionName(table, day)} select * from moved`,
  );
  return true;
}

async function isDefaultSmall(database: Database, table: DailyTable): Promise<boolean> {
  const sizing = 'select pg_relation_size(cast(:table as regclass))::float8';
  return ((await queryValue<number>(database, sizing, { table: `${table}_default` })) ?? 0) <= SMALL_BYTES;
}

/**
 * Attaching reads the whole default partition under an exclusive lock, unless a constraint says that the day is not in
 * it; that one is checked while everybody can. Fails when rows of the day are there: they must be moved.
 */
async function keepOutOfDefault(database: Database, table: DailyTable, day: string): Promise<void> {
  const change = async (...steps: PartitionStep[]) =>
    await database.transaction(async (trx) => {
      await waitBriefly(trx);
      for (const step of steps) await changePartition(trx, step, table, day);
    });
  await change('let in', 'keep out');
  try {
    await changePartition(database, 'validate', table, day);
  } catch (error) {
    await change('let in');
    if (!isCheckViolation(error)) throw error;
  }
}

/**
 * By a function that belongs to the owner of the tables, so that workers need not. `keep out`: a constraint of the default
 * partition, checked by `validate` and removed by `let in`.
 */
export async function changePartition(
  database: Database,
  step: PartitionStep,
  table: DailyTable,
  day: string,
): Promise<void> {
  await query(database, 'select change_partition(:step, :table, cast(:day as date))', { step, table, day });
}

type PartitionStep = 'create' | 'attach' | 'drop' | 'keep out' | 'validate' | 'let in';

async function waitBriefly(trx: Transaction): Promise<void> {
  await trx.raw(`set local lock_timeout = ${TABLE_LOCK_TIMEOUT_MS}`);
}

const BATCH = 10_000;

/** Runs a bounded deletion (rows at most → rows deleted) until there is less than that to delete, or `ending` is aborted. */
export async function inBatches(
  remove: (limit: number) => Promise<number>,
  ending: AbortSignal,
): Promise<void> {
  while (!ending.aborted && (await remove(BATCH)) >= BATCH);
}
