import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';

/** For a transaction whose start is hidden from us: none lasts longer. */
const MAX_TRANSACTION_SECONDS = 60;

/** Against a clock of the database server that is set back a little while it runs. */
const CLOCK_SPARE_MS = 100;

/**
 * The time before which no conversation will still become active, as the database writes it: transactions end in
 * another order than that of the times they noted. Whoever changes conversations holds a lock on the table from before
 * he reads the clock (customers.ts, recipient-conversations.ts) until he ends.
 * A statement of its own, before the one that reads conversations: that one then sees what ended meanwhile.
 */
export async function conversationHorizon(database: Database): Promise<string> {
  const [row] = await query<{ at: string }>(
    database,
    `select cast(least(clock_timestamp(), min(coalesce(a.xact_start, clock_timestamp()
               - :maxSeconds * interval '1 second'))) - :spareMs * interval '1 millisecond' as text) as at
       from pg_locks l left join pg_stat_activity a on a.pid = l.pid
      where l.database = (select oid from pg_database where datname = current_database())
        and l.locktype = 'relation' and l.mode = 'RowExclusiveLock'
        and l.relation = cast(cast('conversations' as regclass) as oid)`,
    { maxSeconds: MAX_TRANSACTION_SECONDS, spareMs: CLOCK_SPARE_MS },
  );
  if (row === undefined) throw new Error('the database did not tell its time');
  return row.at;
}
