import type { Database } from '../../../platform/postgres/database.ts';
import { DAY_COLUMNS, type DailyTable } from '../../../platform/postgres/partitions.ts';
import { query } from '../../../platform/postgres/sql.ts';

/** So many rows move while others wait for the table; a day with more of them keeps its partition. */
export const MOST_MOVED = 10_000;

const ROWS_AT_ONCE = 10_000;

const REFERENCES = {
  events: { day: 'event_day', id: 'event_uuid' },
  deliveries: { day: 'delivery_day', id: 'delivery_id' },
} as const;

/**
 * By day, the ids of events or deliveries that something open needs; of a day with more than can be moved not all. Goes
 * over the queue in portions: however much waits, no statement takes long. Only a replay adds to an old day later; if its
 * event is gone by then, it finds nothing to send.
 */
export async function listNeededIds(
  database: Database,
  table: DailyTable,
  days: readonly string[],
): Promise<Map<string, string[]>> {
  const needed = new Map<string, string[]>();
  if (days.length === 0 || table === 'inbox' || table === 'attempts') return needed;
  const add = (day: string, id: string) => {
    const ids = needed.get(day) ?? [];
    // Several endpoints may have one event.
    if (ids.length <= MOST_MOVED && ids.at(-1) !== id) ids.push(id);
    needed.set(day, ids);
  };
  for (let after: string | null = '0'; after !== null; ) {
    const [page]: QueuePage[] = await readQueue(database, table, days, after);
    for (const [index, day] of (page?.days ?? []).entries()) add(day, page?.ids?.[index] ?? '');
    after = page?.rows === ROWS_AT_ONCE ? page.last : null;
  }
  if (table === 'events') for (const { day, id } of await listAwaitedOrders(database, days)) add(day, id);
  return needed;
}

type QueuePage = { days: string[] | null; ids: string[] | null; last: string | null; rows: number };

async function readQueue(
  database: Database,
  table: keyof typeof REFERENCES,
  days: readonly string[],
  after: string,
): Promise<QueuePage[]> {
  const { day, id } = REFERENCES[table];
  return await query<QueuePage>(
    database,
    `select array_agg(cast(day as text) order by position) filter (where day = any (cast(:days as date[]))) as days,
            array_agg(id order by position) filter (where day = any (cast(:days as date[]))) as ids,
            max(position) as last, count(*)::integer as rows
       from (select position, ${day} as day, ${id} as id from delivery_queue
              where position > cast(:after as bigint) order by position limit ${ROWS_AT_ONCE}) as page`,
    { days, after },
  );
}

/** The workflow of an order writes its event, which is not in the queue when no endpoint wants it. */
const AWAITED_ORDER = `select o.event_day, o.event_uuid from workflow_tasks t
  join orders o on o.id = case when t.workflow_type = 'enrichOrder' then cast(substr(t.workflow_id, 7) as bigint) end
 where t.workflow_type = 'enrichOrder'`;

async function listAwaitedOrders(
  database: Database,
  days: readonly string[],
): Promise<{ day: string; id: string }[]> {
  return await query(
    database,
    `select event_day as day, event_uuid as id from (${AWAITED_ORDER}) as awaited
      where event_day = any (cast(:days as date[]))`,
    { days },
  );
}

/** SQL by table, about its row `r`: whether something open needs it. The event of a batch has the id of the delivery that sends it. */
const IS_NEEDED: Record<DailyTable, string> = {
  inbox: `r.state in ('new', 'failed', 'waiting')`,
  events: `exists (select from deliveries d join delivery_queue q on q.delivery_id = d.id where d.event_uuid = r.id)
           or exists (select from delivery_queue q where q.delivery_id = r.id)
           or r.body is null and r.id in (select event_uuid from (${AWAITED_ORDER}) as awaited)`,
  deliveries: 'exists (select from delivery_queue q where q.delivery_id = coalesce(r.batch_id, r.id))',
  attempts: 'false',
};

const ID_COLUMNS = {
  inbox: 'id',
  events: 'id',
  deliveries: 'id',
  attempts: 'delivery_id',
} as const satisfies Record<DailyTable, string>;

/**
 * Deletes from one partition what is of days that ended more than `keepDays` days ago and not needed, page by page: of the
 * default partition, which is never dropped, and of a day of which too much is needed to move it.
 */
export async function clearPartition(
  database: Database,
  partition: Partition,
  ending: AbortSignal,
): Promise<void> {
  let after: Place | undefined = { day: '-infinity', id: null };
  while (after !== undefined && !ending.aborted) after = await clearPage(database, partition, after);
}

type Partition = { table: DailyTable; partition: string; keepDays: number };

/** `id` null: the beginning. */
type Place = { day: string; id: string | null };

const PAGE_ROWS = 1_000;

/** Returns where the next page begins; undefined behind the last. */
async function clearPage(
  database: Database,
  { table, partition, keepDays }: Partition,
  after: Place,
): Promise<Place | undefined> {
  const day = DAY_COLUMNS[table];
  const id = ID_COLUMNS[table];
  const isBehind = after.id === null ? '' : `and (${day}, ${id}) > (cast(:afterDay as date), :afterId)`;
  const [last] = await query<Place>(
    database,
    `with page as materialized (
       select ctid, ${day} as day, ${id} as id from ${partition}
        where ${day} < (now() at time zone 'utc')::date - cast(:keepDays as integer) ${isBehind}
        order by ${day}, ${id} limit ${PAGE_ROWS}
     ), gone as (
       delete from ${partition} as r where r.ctid = any (array(select ctid from page)) and not (${IS_NEEDED[table]})
     )
     select day, id from page order by day desc, id desc limit 1`,
    { keepDays, afterDay: after.day, afterId: after.id },
  );
  return last;
}
