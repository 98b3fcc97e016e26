import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, hasRow, queryColumn } from '../../platform/postgres/sql.ts';

const IS_BACK = `mode = 'open' and backlog_due_at <= (select clock_timestamp())`;

/** SQL: whether retries of an endpoint are to be brought forward. */
export const HAS_RECOVERED = `exists (select from endpoint_health where ${IS_BACK})`;

/** Their retries are to be brought forward now; the longest waiting first. */
export async function findRecovered(database: Database, limit: number): Promise<string[]> {
  return await queryColumn<string>(
    database,
    `select endpoint_id from endpoint_health where ${IS_BACK} order by backlog_due_at limit :limit`,
    { limit },
  );
}

/** False: the endpoint has failed again, or takes nothing any more. */
export async function isRecovered(trx: Transaction, endpointId: string): Promise<boolean> {
  return await hasRow(trx, `select 1 from endpoint_health where endpoint_id = :endpointId and ${IS_BACK}`, {
    endpointId,
  });
}

export async function noteBroughtForward(
  database: Database,
  endpointId: string,
  { retried, isDone }: { retried: number; isDone: boolean },
): Promise<void> {
  const brought = 'update endpoint_health set backlog_retried_at = now() where endpoint_id = :endpointId';
  if (retried > 0) await execute(database, brought, { endpointId });
  const done = `update endpoint_health set has_backlog = false, backlog_due_at = null where endpoint_id = :endpointId and ${IS_BACK}`;
  if (isDone) await execute(database, done, { endpointId });
}
