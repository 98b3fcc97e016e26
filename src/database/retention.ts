import type { Database } from './database.ts';
import { execute, query } from './sql.ts';

/** Tables with a partition per UTC day, named `<table>_YYYYMMDD`. */
export type DailyTable = 'inbox' | 'events' | 'deliveries' | 'attempts';

/** A dropped partition needs its table for itself. All traffic waits behind whoever waits for that, so not for long. */
const LOCK_TIMEOUT_MS = 100;

/** Days (YYYY-MM-DD) of a table that ended more than `keepDays` days ago, the oldest first. */
export async function listExpiredDays(
  database: Database,
  table: DailyTable,
  keepDays: number,
): Promise<string[]> {
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

/** What is not done yet, by day. Only a replay adds to an old day; whose event is gone by then, it finds nothing to send. */
const OPEN_DAYS: Record<Exclude<DailyTable, 'attempts'>, string> = {
  inbox: `select distinct received_day as day from inbox
           where state in ('new', 'failed') and received_day = any (cast(:days as date[]))`,
  // An order's event is not in the queue when nobody wants it; its workflow writes it all the same.
  events: `select distinct event_day as day from delivery_queue where event_day = any (cast(:days as date[]))
           union
           select day from unnest(cast(:days as date[])) as d (day)
            where day >= (select min(created_at) - interval '1 day' from workflow_tasks)`,
  deliveries: `select distinct delivery_day as day from delivery_queue
                where delivery_day = any (cast(:days as date[]))`,
};

/** Those of `days` that something open still needs: a body to be taken in, or a delivery that waits. */
export async function listDaysInUse(
  database: Database,
  table: DailyTable,
  days: readonly string[],
): Promise<Set<string>> {
  if (table === 'attempts' || days.length === 0) return new Set();
  const rows = await query<{ day: string }>(database, OPEN_DAYS[table], { days });
  return new Set(rows.map((row) => row.day));
}

/** Drops the partition of a day. False: the table was in use, so that it would have had to wait for longer. */
export async function dropDay(database: Database, table: DailyTable, day: string): Promise<boolean> {
  try {
    await database.transaction(async (trx) => {
      await execute(trx, `set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
      await execute(trx, `lock table only ${table} in access exclusive mode`);
      await execute(trx, `drop table if exists ${table}_${day.replaceAll('-', '')}`);
    });
    return true;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
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

function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '55P03';
}
