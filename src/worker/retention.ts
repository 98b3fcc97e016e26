import type { Database } from '../database/database.ts';
import {
  type DailyTable,
  dropDay,
  forgetOldOrderingKeys,
  listDaysInUse,
  listExpiredDays,
} from '../database/retention.ts';
import type { Logger } from './logger.ts';

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

/** As long as a deduplication key: upstream may still send a status of its message. */
const LEAST_KEY_DAYS = 60;
const KEYS_AT_ONCE = 10_000;
const MOST_KEY_BATCHES = 100;

/** Drops whole days that are past their time, except what something open still needs; forgets ordering keys likewise. */
export async function applyRetention(tools: Tools, days: RetentionDays): Promise<void> {
  const { inbox, events } = days;
  const attempts = events === 0 ? days.attempts : Math.min(days.attempts || events, events);
  await dropOldDays(tools, 'inbox', inbox);
  await dropOldDays(tools, 'attempts', attempts);
  await dropOldDays(tools, 'deliveries', events);
  await dropOldDays(tools, 'events', events);
  if (events > 0) await forgetKeys(tools, Math.max(events, LEAST_KEY_DAYS));
}

async function dropOldDays({ database, logger }: Tools, table: DailyTable, keepDays: number): Promise<void> {
  if (keepDays === 0) return;
  const expired = await listExpiredDays(database, table, keepDays);
  const inUse = await listDaysInUse(database, table, expired);
  for (const day of expired) {
    if (inUse.has(day)) continue;
    if (await dropWhenFree(database, table, day))
      logger.info({ table, day }, 'a day past its retention was dropped');
    else logger.info({ table, day }, 'the table is too busy to drop an old day; trying again in an hour');
  }
}

async function dropWhenFree(database: Database, table: DailyTable, day: string): Promise<boolean> {
  for (let tries = 1; tries <= TRIES; tries += 1) {
    if (await dropDay(database, table, day)) return true;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return false;
}

async function forgetKeys({ database }: Tools, keepDays: number): Promise<void> {
  for (let batch = 1; batch <= MOST_KEY_BATCHES; batch += 1) {
    if ((await forgetOldOrderingKeys(database, keepDays, KEYS_AT_ONCE)) < KEYS_AT_ONCE) return;
  }
}
