import { forgetWaitingBodies } from '../../../engine/inbox/waiting-bodies.ts';
import { forgetOldOrderingKeys } from '../../../engine/queue/ordering-keys.ts';
import type { Logger } from '../../../platform/logger.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { isLockTimeout } from '../../../platform/postgres/error-class.ts';
import { isHeldForLong } from '../../../platform/postgres/long-holders.ts';
import {
  type DailyTable,
  inBatches,
  partitionName,
  TABLE_LOCK_TIMEOUT_MS,
} from '../../../platform/postgres/partitions.ts';
import { queryColumn, queryValue } from '../../../platform/postgres/sql.ts';
import { clearPartition, listNeededIds, MOST_MOVED } from './needed-rows.ts';

/** For how many days each is kept; 0: for ever. */
export type RetentionDays = {
  inbox: number;
  events: number;
  /** Attempts with their responses; never longer than the deliveries. */
  attempts: number;
};

type Tools = { database: Database; logger: Logger };

/** Attempts to get a table for a tenth of a second; after them the day waits for the next turn. */
const TRIES = 3;

/** Upstream may still send a status of a message that is so old, and its number must follow the last one. */
const LEAST_KEY_DAYS = 60;

class TablesInUse extends Error {}

/**
 * Drops whole days that are past their time; rows that something open still needs stay, and no others with them. Forgets
 * ordering keys likewise. Throws TablesInUse at the end when a day could not be dropped. Once `ending` is aborted, the
 * rest is left.
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
  const crowded: { table: DailyTable; day: string; keepDays: number }[] = [];
  // Whole days first: they free the most.
  for (const [table, keepDays] of limited) {
    const kept = await dropOldDays(tools, table, keepDays, ending);
    left.push(...kept.busy.map((day) => `${table} ${day}`));
    crowded.push(...kept.crowded.map((day) => ({ table, day, keepDays })));
  }
  const { database } = tools;
  for (const [table, keepDays] of limited)
    await clearPartition(database, { table, partition: `${table}_default`, keepDays }, ending);
  const keyDays = Math.max(events, LEAST_KEY_DAYS);
  if (events > 0) await inBatches((limit) => forgetOldOrderingKeys(database, keyDays, limit), ending);
  for (const { table, day, keepDays } of crowded)
    await clearPartition(database, { table, partition: partitionName(table, day), keepDays }, ending);
  if (left.length > 0) throw new TablesInUse(`others hold the tables of ${left.join(', ')}`);
}

/** Days that are past their time and stay: others hold their table, or too much in them is still needed. */
type Left = { busy: string[]; crowded: string[] };

async function dropOldDays(
  { database, logger }: Tools,
  table: DailyTable,
  keepDays: number,
  ending: AbortSignal,
): Promise<Left> {
  const expired = await listExpiredDays(database, table, keepDays);
  const needed = await listNeededIds(database, table, expired);
  const left: Left = { busy: [], crowded: [] };
  for (const day of expired) {
    if (ending.aborted) break;
    const outcome = await dropWhenFree(database, table, day, needed.get(day) ?? []);
    if (outcome === 'dropped') logger.info({ table, day }, 'a day past its retention was dropped');
    else left[outcome].push(day);
  }
  return left;
}

async function dropWhenFree(
  database: Database,
  table: DailyTable,
  day: string,
  neededIds: readonly string[],
): Promise<DropOutcome> {
  for (let tries = 1; tries <= TRIES; tries += 1) {
    if (await isHeldForLong(database, [table, partitionName(table, day)])) return 'busy';
    const outcome = await dropDay(database, table, day, neededIds);
    if (outcome !== 'busy') return outcome;
  }
  return 'busy';
}

/** Days (YYYY-MM-DD) of a table that ended more than `keepDays` days ago, the oldest first. */
async function listExpiredDays(database: Database, table: DailyTable, keepDays: number): Promise<string[]> {
  return await queryColumn(
    database,
    `select day from (
       select to_date(right(c.relname, 8), 'YYYYMMDD') as day
         from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = cast(:table as regclass) and c.relname ~ :pattern) as days
      where day < (now() at time zone 'utc')::date - cast(:keepDays as integer)
      order by day`,
    { table, pattern: `^${table}_[0-9]{8}$`, keepDays },
  );
}

/** `busy`: others hold the table; `crowded`: more rows of the day are needed than can be moved. */
type DropOutcome = 'dropped' | 'busy' | 'crowded';

/**
 * Drops the partition of a day, unless it would have to wait for longer than a moment. What is needed moves to the
 * default partition: of bodies those that are not ingested, otherwise the rows with these ids.
 */
export async function dropDay(
  database: Database,
  table: DailyTable,
  day: string,
  neededIds: readonly string[] = [],
): Promise<DropOutcome> {
  try {
    return await database.transaction(async (trx) => {
      await trx.raw(`set local lock_timeout = ${TABLE_LOCK_TIMEOUT_MS}`);
      await trx.raw(`lock table only ${table} in access exclusive mode`);
      const dropping =
        'select drop_partition_except(:table, cast(:day as date), cast(:neededIds as uuid[]), :most)';
      const given = { table, day, neededIds, most: MOST_MOVED };
      if ((await queryValue<boolean>(trx, dropping, given)) !== true) return 'crowded';
      if (table === 'inbox') await forgetWaitingBodies(trx, day);
      return 'dropped';
    });
  } catch (error) {
    if (isLockTimeout(error)) return 'busy';
    throw error;
  }
}
