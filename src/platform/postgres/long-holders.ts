import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './database.ts';
import { queryColumn } from './sql.ts';

/** Statements of the product hold a table for less. */
const LONG_MS = 250;

/**
 * Whether a transaction holds one of these tables that does not end within a moment, such as a dump. Waiting for it in order to lock
 * the table would make all later statements on the table wait too, so this is asked before.
 */
export async function isHeldForLong(database: Database, tables: readonly string[]): Promise<boolean> {
  const before = new Set(await holdersOf(database, tables));
  if (before.size === 0) return false;
  await sleep(LONG_MS);
  return (await holdersOf(database, tables)).some((holder) => before.has(holder));
}

async function holdersOf(database: Database, tables: readonly string[]): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `select virtualtransaction from pg_locks
      where relation in (select to_regclass(name) from unnest(cast(:tables as text[])) as t (name))
        and database = (select oid from pg_database where datname = current_database())
        and granted and pid <> pg_backend_pid()`,
    { tables },
  );
}
