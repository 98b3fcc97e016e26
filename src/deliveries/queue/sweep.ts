import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import type { DeliveryPlace } from './claim.ts';

/** A delivery that is overdue, and for how long. */
export type Overdue = DeliveryPlace & { overdueMs: number };

/**
 * Takes deliveries whose workflow is overdue by `overdueMs` or lost, and those left to a workflow `firstOverdueMs` ago
 * without a first attempt: it may never have been started. Each is taken by one process and comes up again after
 * `againMs`, behind the others, so that what cannot go on hides nothing. At most `limit` of either kind.
 */
export async function takeOverdue(
  database: Database,
  options: {
    overdueMs: number;
    firstOverdueMs: number;
    againMs: number;
    /** What has been waiting for longer is left out. */
    withinSeconds: number;
    limit: number;
  },
): Promise<Overdue[]> {
  return await query<Overdue>(
    database,
    `with waiting as (
       select position from delivery_queue
        where state = 'retrying' and by_workflow
          and greatest(next_attempt_at, swept_at) < now() - cast(:firstOverdueMs as float8) * interval '1 millisecond'
          and greatest(next_attempt_at, swept_at) > now() - cast(:withinSeconds as float8) * interval '1 second'
          and next_attempt_at < now() - interval '1 millisecond'
              * case attempts when 0 then cast(:firstOverdueMs as float8) else cast(:overdueMs as float8) end
          and (swept_at is null or swept_at < now() - cast(:againMs as float8) * interval '1 millisecond')
        order by greatest(next_attempt_at, swept_at) limit cast(:limit as integer) for update skip locked
     ), lost as (
       select position from delivery_queue
        where state = 'claimed' and by_workflow
          and lease_until < now() - cast(:overdueMs as float8) * interval '1 millisecond'
          and lease_until > now() - cast(:withinSeconds as float8) * interval '1 second'
          and (swept_at is null or swept_at < now() - cast(:againMs as float8) * interval '1 millisecond')
        order by lease_until limit cast(:limit as integer) for update skip locked
     )
     update delivery_queue set swept_at = now()
      where position = any (array(select position from waiting union all select position from lost))
     returning delivery_id as "deliveryId", delivery_day as "deliveryDay", event_day as "eventDay",
               event_uuid as "eventUuid", endpoint_id as "endpointId",
               cast(extract(epoch from now() - case state when 'claimed' then lease_until else next_attempt_at end) * 1000
                    as float8) as "overdueMs"`,
    options,
  );
}

/**
 * Makes the oldest waiting delivery of each lane its head (see the function promote_next). The heads before it must have
 * been locked and moved away by an earlier statement.
 */
async function promoteNext(
  trx: Transaction,
  lanes: readonly { endpoint_id: string; lane: string }[],
): Promise<void> {
  await query(trx, 'select promote_next(?, ?, null, null)', [
    lanes.map((lane) => lane.endpoint_id),
    lanes.map((lane) => lane.lane),
  ]);
}

/** For `order` events and at endpoints with a wide order scope, where nothing else is chosen. Others have no limit. */
const BLOCK_LIMIT_SECONDS = 900;

type Blocking = { deliveryId: string; deliveryDay: string };

/**
 * Lets deliveries step aside that have been failing for longer than one may block others of its key: each goes on in a
 * lane of its own with its retries and its workflow, and the next of its former lane becomes the head. The limit is the
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
    `select q.delivery_id as "deliveryId", q.delivery_day as "deliveryDay"
       from delivery_queue q
       join webhook_endpoints w on w.id = q.endpoint_id and w.mode = 'open'
      where q.state = 'retrying' and q.stepped_aside_at is null and q.attempts > 0
        and q.first_failed_at < now() - interval '1 minute'
        and (q.next_attempt_at > clock_timestamp() or q.next_attempt_at < clock_timestamp() - interval '1 minute')
        and exists (select 1 from delivery_queue b
                     where b.endpoint_id = q.endpoint_id and b.lane = q.lane and b.state = 'queued')
        and greatest(q.first_failed_at, w.mode_changed_at) < clock_timestamp() - interval '1 second' * nullif(
              coalesce(w.block_limit_seconds, nullif(cast(:defaultSeconds as integer), 0), case
                when w.order_scope <> 'event' or (select ev.event_type from events ev
                       where ev.day = q.event_day and ev.id = q.event_uuid) = 'order'
                then cast(:fallback as integer) end), 0)
      order by q.first_failed_at limit cast(:limit as integer)`,
    { ...options, fallback: BLOCK_LIMIT_SECONDS },
  );
  const stepped = await Promise.all(blocking.map((delivery) => stepOneAside(database, delivery)));
  return stepped.filter(Boolean).length;
}

/**
 * Once the head is locked, nothing claims it, settles it or queues behind it. The next is promoted in a statement
 * of its own, whose snapshot has all that was queued before. False: an attempt was faster.
 */
async function stepOneAside(database: Database, { deliveryId, deliveryDay }: Blocking): Promise<boolean> {
  return await database.transaction(async (trx) => {
    const lanes = await query<{ endpoint_id: string; lane: string }>(
      trx,
      `select endpoint_id, lane from delivery_queue
        where delivery_id = ? and state = 'retrying' and stepped_aside_at is null for update`,
      [deliveryId],
    );
    if (lanes.length === 0) return false;
    await execute(
      trx,
      `update delivery_queue set lane = 'aside/' || delivery_id, stepped_aside_at = clock_timestamp()
        where delivery_id = ?`,
      [deliveryId],
    );
    await promoteNext(trx, lanes);
    await execute(
      trx,
      'update deliveries set stepped_aside_at = clock_timestamp() where day = ? and id = cast(? as uuid)',
      [deliveryDay, deliveryId],
    );
    return true;
  });
}

/**
 * Makes retries due whose time has come and that no workflow carries, at most `limit` of those that have waited for
 * `withinSeconds` at most; returns how many.
 */
export async function releaseDueRetries(
  database: Database,
  options: { withinSeconds: number; limit: number },
): Promise<number> {
  return await execute(
    database,
    `update delivery_queue set state = 'due', next_attempt_at = null
      where ctid = any (array(select ctid from delivery_queue
                               where state = 'retrying' and not by_workflow and next_attempt_at <= clock_timestamp()
                                 and next_attempt_at > now() - cast(:withinSeconds as float8) * interval '1 second'
                               order by next_attempt_at limit cast(:limit as integer) for update skip locked))`,
    options,
  );
}

/**
 * Leaves retries to the delivery loops whose workflows cannot be started. What was never attempted stays: a test event
 * goes out by its workflow only.
 */
export async function retryInLoop(database: Database, deliveryIds: readonly string[]): Promise<void> {
  if (deliveryIds.length === 0) return;
  await execute(
    database,
    `update delivery_queue set by_workflow = false
      where delivery_id = any (?::uuid[]) and state = 'retrying' and by_workflow and attempts > 0`,
    [deliveryIds],
  );
}

/** Leaves a claim that was not attempted to its workflow, which attempts it at once. */
export async function leaveToWorkflow(database: Database, token: string, deliveryId: string): Promise<void> {
  await execute(
    database,
    `update delivery_queue set state = 'retrying', by_workflow = true, token = null, lease_until = null,
                               next_attempt_at = clock_timestamp()
      where delivery_id = ?::uuid and token = ? and state = 'claimed'`,
    [deliveryId, token],
  );
}

/** A page of the retries that workflows make, by their place in the queue. */
export async function listWorkflowRetries(
  database: Database,
  after: string,
  limit: number,
): Promise<{ position: string; deliveryId: string; endpointId: string }[]> {
  return await query(
    database,
    `select position, delivery_id as "deliveryId", endpoint_id as "endpointId" from delivery_queue
      where position > cast(:after as bigint) and state = 'retrying' and by_workflow and attempts > 0
      order by position limit :limit`,
    { after, limit },
  );
}

/** Those of these deliveries that are open. */
export async function findOpenDeliveries(
  database: Database,
  deliveryIds: readonly string[],
): Promise<Set<string>> {
  const rows = await query<{ id: string }>(
    database,
    'select delivery_id as id from delivery_queue where delivery_id = any (cast(? as uuid[]))',
    [deliveryIds],
  );
  return new Set(rows.map(({ id }) => id));
}
