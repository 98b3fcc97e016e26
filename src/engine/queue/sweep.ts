import type { Database } from '../../platform/postgres/database.ts';
import { execute, query, queryColumn } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7 } from '../../platform/public-ids.ts';
import { SOON } from '../../platform/work-watch.ts';
import { HAS_BUFFERED_HEAD } from './buffers.ts';
import { LONGEST_LEASE } from './claim.ts';
import { rowIs } from './states.ts';

/** For `order` events and at endpoints with a wide order scope, where nothing else is chosen. Others have no limit. */
const BLOCK_LIMIT_SECONDS = 900;

/**
 * SQL of the recursive expression `blocking` (endpoint_id, blocks): the endpoints with a head that blocks others, once per
 * kind. A skip scan, so heads that have no limit, or have not reached it, cost nothing however many they are.
 */
const BLOCKING = `blocking (endpoint_id, blocks) as (
  (select endpoint_id, blocks from delivery_queue
    where state = 'retrying' and blocks is not null and stepped_aside_at is null
    order by endpoint_id, blocks limit 1)
  union all
  select next.endpoint_id, next.blocks
    from blocking cross join lateral (
      select q.endpoint_id, q.blocks from delivery_queue q
       where q.state = 'retrying' and q.blocks is not null and q.stepped_aside_at is null
         and (q.endpoint_id, q.blocks) > (blocking.endpoint_id, blocking.blocks)
       order by q.endpoint_id, q.blocks limit 1) as next
)`;

/** SQL: whether claims have expired, or a head blocks others. What expired long ago is found by the sweeps that look at everything. */
export const HAS_STUCK = `exists (select from delivery_queue
    where state = 'claimed' and lease_until between now() - interval '2 minutes' and now())
  or exists (select from delivery_queue where state = 'claimed' and lease_until > now() + ${LONGEST_LEASE})
  or (select true from delivery_queue where state = 'retrying' and blocks is not null and stepped_aside_at is null
       order by endpoint_id, blocks limit 1) is not null`;

type Blocking = { deliveryId: string; deliveryDay: string };

/**
 * Lets deliveries step aside that have been failing for longer than one may block others of its key: each goes on in its
 * own lane with its retries and its workflow, and the next of its former lane becomes the head. The limit is the
 * endpoint's (0: none), else `defaultSeconds` where that is not 0, else the one above. Time before the endpoint was
 * (again) taking deliveries does not count, and an attempt that has just become due is made first. Returns how many,
 * at most `limit`.
 */
export async function stepAside(
  database: Database,
  options: { defaultSeconds: number; limit: number },
): Promise<number> {
  const blocking = await query<Blocking>(
    database,
    `with recursive ${BLOCKING}
     select q.delivery_id as "deliveryId", q.delivery_day as "deliveryDay"
       from blocking b
       join webhook_endpoints w on w.id = b.endpoint_id
       join endpoint_health h on h.endpoint_id = w.id and h.mode = 'open'
      cross join lateral (
        select (select clock_timestamp()) - interval '1 second' * nullif(
                 coalesce(w.block_limit_seconds, nullif(cast(:defaultSeconds as integer), 0), case
                   when w.order_scope <> 'event' or b.blocks = 'order' then cast(:fallback as integer) end), 0)
      ) as l (failing_before)
      cross join lateral (
        select q.delivery_id, q.delivery_day, q.first_failed_at from delivery_queue q
         where q.endpoint_id = b.endpoint_id and q.blocks = b.blocks and q.state = 'retrying'
           and q.stepped_aside_at is null and q.attempts > 0
           and q.first_failed_at < least(l.failing_before, now() - interval '1 minute')
           and (q.next_attempt_at > (select clock_timestamp()) or q.next_attempt_at < (select clock_timestamp()) - interval '1 minute')
           and exists (select 1 from delivery_queue f
                        where f.endpoint_id = q.endpoint_id and f.lane = q.lane and f.state = 'queued')
         order by q.first_failed_at limit cast(:limit as integer)
      ) as q
      where h.mode_changed_at < l.failing_before
      order by q.first_failed_at limit cast(:limit as integer)`,
    { ...options, fallback: BLOCK_LIMIT_SECONDS },
  );
  let stepped = 0;
  // One after the other: attempts share these connections.
  for (const delivery of blocking) if (await stepOneAside(database, delivery)) stepped += 1;
  return stepped;
}

/**
 * Once the head is locked, nothing claims it, settles it or queues behind it. The next is promoted in a separate
 * statement, whose snapshot has all that was queued before. False: an attempt was faster.
 */
async function stepOneAside(database: Database, { deliveryId, deliveryDay }: Blocking): Promise<boolean> {
  return await database.transaction(async (trx) => {
    const [head] = await query<{
      endpointId: string;
      lane: string;
      position: string;
      batch: string[] | null;
    }>(
      trx,
      `select endpoint_id as "endpointId", lane, position, batch from delivery_queue
        where delivery_id = :deliveryId and ${rowIs('retrying')} and stepped_aside_at is null for update`,
      { deliveryId },
    );
    if (head === undefined) return false;
    await execute(
      trx,
      `update delivery_queue set lane = 'aside/' || delivery_id, stepped_aside_at = clock_timestamp()
        where delivery_id = :deliveryId`,
      { deliveryId },
    );
    await query(trx, 'select promote_behind(:endpointIds, :lanes, :positions, null, null)', {
      endpointIds: [head.endpointId],
      lanes: [head.lane],
      positions: [head.position],
    });
    await execute(
      trx,
      `update deliveries set stepped_aside_at = clock_timestamp()
        where day = any (cast(:days as date[])) and id = any (cast(:ids as uuid[]))`,
      {
        days: [...new Set([deliveryDay, ...(head.batch ?? []).map(dayOfUuidV7)])],
        ids: head.batch ?? [deliveryId],
      },
    );
    return true;
  });
}

/** SQL: whether a retry or a test event is due soon, or some head is buffered. What was due long ago is found by sweeps. */
export const HAS_RETRY = `exists (select from delivery_queue
    where state = 'retrying' and next_attempt_at between now() - interval '2 minutes' and ${SOON})
  or (select true from delivery_queue where state = 'unreleased' order by next_attempt_at limit 1) is not null`;

/**
 * Makes retries due whose time has come, at most `limit` of those that have waited for `withinSeconds` at most. A retry
 * that a run shows is left to that for `runGraceMs` more. Returns how many.
 */
export async function releaseDueRetries(
  database: Database,
  options: { withinSeconds: number; runGraceMs: number; limit: number },
): Promise<number> {
  return await execute(
    database,
    `update delivery_queue set state = 'due', next_attempt_at = null
      where ctid = any (array(select ctid from delivery_queue
                               where state = 'retrying' and attempts > 0 and next_attempt_at <= (select clock_timestamp())
                                 and next_attempt_at > now() - cast(:withinSeconds as float8) * interval '1 second'
                                 and (run is null or next_attempt_at
                                        <= (select clock_timestamp()) - cast(:runGraceMs as float8) * interval '1 millisecond')
                               order by next_attempt_at limit cast(:limit as integer) for update skip locked))`,
    options,
  );
}

type Late = { tests: { deliveryId: string; deliveryDay: string }[]; hasBufferedHead: boolean };

/**
 * In one statement, because no claim of the loop finds them: test events whose runs have not come for them within `runGraceMs`, and whether a buffered
 * head may have waited long enough.
 */
export async function findLate(
  database: Database,
  options: { runGraceMs: number; limit: number },
): Promise<Late> {
  const rows = await query<Partial<Record<keyof Late['tests'][number], string | null>>>(
    database,
    `(select delivery_id as "deliveryId", delivery_day as "deliveryDay" from delivery_queue
       where state = 'retrying' and attempts = 0
         and next_attempt_at <= (select clock_timestamp()) - cast(:runGraceMs as float8) * interval '1 millisecond'
       order by next_attempt_at limit cast(:limit as integer))
     union all select null, null where ${HAS_BUFFERED_HEAD}`,
    options,
  );
  const tests = rows.flatMap(({ deliveryId, deliveryDay }) =>
    deliveryId && deliveryDay ? [{ deliveryId, deliveryDay }] : [],
  );
  return { tests, hasBufferedHead: tests.length < rows.length };
}

export async function findOpenDeliveries(
  database: Database,
  deliveryIds: readonly string[],
): Promise<Set<string>> {
  const ids = await queryColumn<string>(
    database,
    'select delivery_id from delivery_queue where delivery_id = any (cast(:deliveryIds as uuid[]))',
    { deliveryIds },
  );
  return new Set(ids);
}
