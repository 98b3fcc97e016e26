import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './database.ts';
import { query, queryColumn } from './sql.ts';

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

/** Who keeps PostgreSQL from clearing away what has gone: a session by application and process, or a prepared transaction. */
export type OldSnapshot = { holder: string; minutes: number };

/** Snapshots of this database that are held for longer, the oldest first. */
export async function oldSnapshots(database: Database, longerThanMinutes: number): Promise<OldSnapshot[]> {
  return await query<OldSnapshot>(
    database,
    `select holder, floor(extract(epoch from clock_timestamp() - since) / 60)::integer as minutes
       from (select 'the session of ' || coalesce(nullif(application_name, ''), usename) || ' (process ' || pid || ')' as holder,
                    xact_start as since
               from pg_stat_activity
              where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
                and (backend_xmin is not null or backend_xid is not null)
             union all
             select 'the prepared transaction ' || gid, prepared from pg_prepared_xacts
              where database = current_database()) as held
      where since < (select clock_timestamp()) - :longerThanMinutes * interval '1 minute'
      order by since limit 10`,
    { longerThanMinutes },
  );
}
