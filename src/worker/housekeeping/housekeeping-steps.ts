import { dropWaiting } from '../../deliveries/queue/drop-waiting.ts';
import { listGoneEndpoints } from '../../deliveries/queue/gone-endpoints.ts';
import { forgetOldFailures } from '../../endpoints/endpoint-failures.ts';
import { forgetOldMinutes } from '../../endpoints/endpoint-health.ts';
import { forgetOldDedupKeys } from '../../inbound/intake/dedup-keys.ts';
import { forgetOldIdempotencyKeys } from '../../messages/send/idempotency-keys.ts';
import { forgetSpentPacing } from '../../messages/send/send-pacing.ts';
import { removeSpentUploads } from '../../messages/send/spent-uploads.ts';
import type { Logger } from '../../platform/logger.ts';
import type { ObjectStore } from '../../platform/object-store/object-store.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { inBatches } from '../../platform/postgres/in-batches.ts';
import { ensurePartitions } from '../../platform/postgres/partitions.ts';
import { forgetOldInvitations } from '../../users/invitation-store.ts';
import { forgetEndedSessions } from '../../users/user-session-store.ts';
import { forgetUsersWithoutTenant } from '../../users/user-store.ts';
import { applyRetention, type RetentionDays } from './retention.ts';

export type HousekeepingTools = {
  database: Database;
  objectStore: Pick<ObjectStore, 'remove'>;
  logger: Logger;
  retentionDays: RetentionDays;
};

export type HousekeepingStep = { name: string; run: () => Promise<unknown> };

/** For charts; the breaker looks at the last five minutes only. */
const MINUTES_KEPT_DAYS = 90;

/** A partition that cannot be made yet is no fault before so many days are left. */
const DAYS_LEFT = 3;

const GONE_ENDPOINTS_AT_ONCE = 100;

/** What a step leaves undone. */
class HousekeepingError extends Error {}

/** All steps, in the order in which they are done. */
export function housekeepingSteps(tools: HousekeepingTools): HousekeepingStep[] {
  const { database, retentionDays } = tools;
  return [
    { name: 'partitions', run: () => makePartitions(database) },
    { name: 'deleted endpoints', run: () => dropForGoneEndpoints(database) },
    { name: 'retention', run: () => applyRetention(tools, retentionDays) },
    { name: 'deduplication keys', run: () => inBatches((limit) => forgetOldDedupKeys(database, limit)) },
    {
      name: 'endpoint charts',
      run: async () => {
        await inBatches((limit) => forgetOldMinutes(database, MINUTES_KEPT_DAYS, limit));
        await inBatches((limit) => forgetOldFailures(database, MINUTES_KEPT_DAYS, limit));
      },
    },
    { name: 'idempotency keys', run: () => inBatches((limit) => forgetOldIdempotencyKeys(database, limit)) },
    { name: 'send pacing', run: () => inBatches((limit) => forgetSpentPacing(database, limit)) },
    { name: 'uploaded files', run: () => removeUploads(tools) },
    { name: 'sessions', run: () => inBatches((limit) => forgetEndedSessions(database, limit)) },
    { name: 'invitations', run: () => inBatches((limit) => forgetOldInvitations(database, limit)) },
    {
      name: 'users without tenant',
      run: () => inBatches((limit) => forgetUsersWithoutTenant(database, limit)),
    },
  ];
}

async function makePartitions(database: Database): Promise<void> {
  const missing = (await ensurePartitions(database)).filter(({ daysAhead }) => daysAhead < DAYS_LEFT);
  const [first] = missing;
  if (first === undefined) return;
  throw new HousekeepingError(
    `${missing.length} partitions of the next ${DAYS_LEFT} days are missing, first ${first.table} ${first.day}: ${first.reason}`,
  );
}

/** An endpoint's removal goes over the queue once more after the endpoint is gone; a process may die before that. */
async function dropForGoneEndpoints(database: Database): Promise<void> {
  for (const { wabaId, endpointId } of await listGoneEndpoints(database, GONE_ENDPOINTS_AT_ONCE)) {
    await dropWaiting(database, wabaId, endpointId, {
      reason: 'dropped: the endpoint was deleted',
      underWayToo: true,
    });
  }
}

async function removeUploads(tools: HousekeepingTools): Promise<void> {
  const failures = await removeSpentUploads(tools);
  if (failures > 0) throw new HousekeepingError(`the object store did not remove ${failures} files`);
}
