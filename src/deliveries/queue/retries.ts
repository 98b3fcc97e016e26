import type { Database } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';

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
