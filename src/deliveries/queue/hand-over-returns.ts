import type { Database } from '../../database/database.ts';
import { execute } from '../../database/sql.ts';

/**
 * Gives deliveries back that no workflow has got since they were handed over, so that they are handed over again. One
 * that an earlier workflow attempted meanwhile stays as that attempt left it: claimed, or waiting for its time.
 */
export async function returnUnattempted(database: Database, deliveryIds: readonly string[]): Promise<void> {
  await execute(
    database,
    `update delivery_queue set state = 'due', next_attempt_at = null
      where delivery_id = any (?::uuid[]) and state = 'retrying' and not awaits_workflow
        and next_attempt_at <= clock_timestamp()`,
    [deliveryIds],
  );
}
