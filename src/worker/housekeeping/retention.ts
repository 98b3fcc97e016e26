import type { Logger } from '../../platform/logger.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { inBatches } from '../../platform/postgres/in-batches.ts';
import type { DailyTable } from '../../platform/postgres/partitions.ts';
import {
  clearDefaultPartition,
  type DropOutcome,
  dropDay,
  forgetOldOrderingKeys,
  listDaysInUse,
  listExpiredDays,
} from './expired-days.ts';

/** For how many days each is kept; 0: for ever. */
export type RetentionDays = {
  /** Bodies as upstream sent them. */
  inbox: number;
  /** Events and the log of their deliveries. */
  events: number;
  /** What endpoints answered; never longer than the deliveries. */
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
 * Throws TablesInUse at the end when a day could not be dropped.
 */
export async function applyRetention(tools: Tools, days: RetentionDays): Promise<void> {
  const { inbox, events } = days;
  const attempts = events === 0 ? days.attempts : Math.min(days.attempts || events, events);
  const left = [
    ...(await dropOldDays(tools, 'inbox', inbox)),
    ...(await dropOldDays(tools, 'attempts', attempts)),
    ...(await dropOldDays(tools, 'deliveries', events)),
    ...(await dropOldDays(tools, 'events', events)),
  ];
  const { database } = tools;
  const keyDays = Math.max(events, LEAST_KEY_DAYS);
  if (events > 0) await inBatches((limit) => forgetOldOrderingKeys(database, keyDays, limit));
  if (left.length > 0) throw new TablesInUse(`others hold the tables of ${left.join(', ')}`);
}

async function dropOldDays(
  { database, logger }: Tools,
  table: DailyTable,
  keepDays: number,
): Promise<string[]> {
  if (keepDays === 0) return [];
  const expired = await listExpiredDays(database, table, keepDays);
  const inUse = await listDaysInUse(database, table, expired);
  const left: string[] = [];
  for (const day of expired) {
    if (inUse.has(day)) continue;
    const outcome = await dropWhenFree(database, table, day);
    if (outcome === 'dropped') logger.info({ table, day }, 'a day past its retention was dropped');
    if (outcome === 'busy') left.push(`${table} ${day}`);
  }
  await inBatches((limit) => clearDefaultPartition(database, table, keepDays, limit));
  return left;
}

async function dropWhenFree(database: Database, table: DailyTable, day: string): Promise<DropOutcome> {
  for (let tries = 1; ; tries += 1) {
    const outcome = await dropDay(database, table, day);
    if (outcome !== 'busy' || tries === TRIES) return outcome;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
