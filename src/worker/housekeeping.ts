import type { Database } from '../database/database.ts';
import { forgetOldDedupKeys } from '../database/dedup-keys.ts';
import { forgetOldMinutes } from '../database/endpoint-health.ts';
import { forgetOldIdempotencyKeys } from '../database/idempotency-keys.ts';
import { forgetOldInvitations } from '../database/invitations.ts';
import { ensurePartitions } from '../database/maintenance.ts';
import { forgetSpentPacing } from '../database/send-pacing.ts';
import { forgetEndedSessions } from '../database/user-sessions.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import type { Logger } from './logger.ts';
import { type Loop, startLoop } from './loop.ts';
import { applyRetention, type RetentionDays } from './retention.ts';
import { removeSpentUploads } from './spent-uploads.ts';

const HOUR_MS = 3_600_000;

/** For charts; the breaker looks at the last five minutes only. */
const MINUTES_KEPT_DAYS = 90;

/** Hourly: partitions for the coming days, and an end to what nothing can ask for any more. */
export function startHousekeeping(tools: {
  database: Database;
  objectStore: Pick<ObjectStore, 'remove'>;
  logger: Logger;
  retentionDays: RetentionDays;
}): Loop {
  const { database, logger } = tools;
  return startLoop({
    name: 'housekeeping',
    pollMs: HOUR_MS,
    logger,
    turn: async () => {
      await ensurePartitions(database);
      await applyRetention(tools, tools.retentionDays);
      await forgetOldDedupKeys(database);
      await forgetOldMinutes(database, MINUTES_KEPT_DAYS);
      await forgetOldIdempotencyKeys(database);
      await forgetSpentPacing(database);
      await removeSpentUploads(tools);
      await forgetEndedSessions(database);
      await forgetOldInvitations(database);
      return false;
    },
  });
}
