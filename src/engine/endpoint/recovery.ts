import type { Database } from '../../platform/postgres/database.ts';
import { queryValue } from '../../platform/postgres/sql.ts';
import type { Endpoint } from './store.ts';

/**
 * Since when an endpoint takes deliveries again, while some go out that waited for that; null: none do, or it fails.
 * A delivery that it refused for itself waits for its own retries and is no such backlog.
 */
export function recoveringSince(
  endpoint: Pick<Endpoint, 'mode' | 'modeChangedAt' | 'failingSince' | 'recoveredAt' | 'backlogDueAt'>,
  { oldestAt, oldestDueAt }: { oldestAt: Date | null; oldestDueAt: Date | null },
): Date | null {
  const { mode, modeChangedAt, failingSince, recoveredAt, backlogDueAt } = endpoint;
  if (mode !== 'open' || failingSince !== null) return null;
  const since = recoveredAt !== null && recoveredAt > modeChangedAt ? recoveredAt : modeChangedAt;
  const oldest = backlogDueAt !== null ? oldestAt : oldestDueAt;
  return oldest !== null && oldest < since ? since : null;
}

/** How many deliveries an endpoint accepted since then, from the beginning of that minute on. */
export async function countDeliveredSince(
  database: Database,
  endpointId: string,
  since: Date,
): Promise<number> {
  const n = await queryValue<number>(
    database,
    `select coalesce(sum(successes), 0)::float8 from endpoint_minutes
      where endpoint_id = cast(:endpointId as bigint) and minute >= date_trunc('minute', cast(:since as timestamptz))`,
    { endpointId, since },
  );
  return n ?? 0;
}
