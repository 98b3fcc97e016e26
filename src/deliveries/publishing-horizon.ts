import { type Database, PUBLISHING_LOCK } from '../platform/postgres/database.ts';
import { query } from '../platform/postgres/sql.ts';
import { lowestUuidAt, msOfUuidV7 } from '../platform/public-ids.ts';

/** How far the clocks of our machines may be apart, in ms. */
const CLOCK_SPARE_MS = 2_000;

/** How long an event that is not released holds up those behind it, in ms. */
const MAX_WAIT_FOR_RELEASE_MS = 60_000;

/** For a publisher whose start is hidden from us: no statement takes longer. */
const MAX_TRANSACTION_SECONDS = 60;

/**
 * Unix time in ms before which no event of a WABA will still appear: transactions end in another order than that of
 * the ids they drew. Whoever publishes holds the publishing lock, or one on the table, from before it draws ids.
 * An event that waits to be released holds the time back too, for a minute.
 * A statement of its own, before the one that reads events: that one then sees what ended meanwhile.
 */
export async function publishingHorizonMs(database: Database, wabaId: string): Promise<number> {
  const [row] = await query<{ atMs: number; heldId: string | null }>(
    database,
    `select (extract(epoch from least(clock_timestamp(), min(coalesce(a.xact_start, clock_timestamp()
               - :maxSeconds * interval '1 second')))) * 1000)::float8 as "atMs",
            (select id from events
              where waba_id = :wabaId and body is null and id > cast(:oldestHeld as uuid)
              order by id limit 1) as "heldId"
       from pg_locks l left join pg_stat_activity a on a.pid = l.pid
      where l.database = (select oid from pg_database where datname = current_database())
        and (l.locktype = 'advisory' and l.classid = 0 and l.objid = cast(:lock as oid) and l.objsubid = 1
             or l.locktype = 'relation' and l.mode = 'RowExclusiveLock'
                and l.relation = cast(cast('events' as regclass) as oid))`,
    {
      wabaId,
      lock: PUBLISHING_LOCK,
      maxSeconds: MAX_TRANSACTION_SECONDS,
      oldestHeld: lowestUuidAt(Date.now() - MAX_WAIT_FOR_RELEASE_MS),
    },
  );
  if (row === undefined) throw new Error('the database did not tell its time');
  const { atMs, heldId } = row;
  const settledMs = Math.floor(atMs) - CLOCK_SPARE_MS;
  return heldId === null ? settledMs : Math.min(settledMs, msOfUuidV7(heldId));
}
