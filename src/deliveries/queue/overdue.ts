import type { Database } from '../../platform/postgres/database.ts';
import { query } from '../../platform/postgres/sql.ts';
import type { DeliveryPlace } from './delivery-label.ts';

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
