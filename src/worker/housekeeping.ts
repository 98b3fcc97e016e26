import type { Database } from '../database/database.ts';
import { forgetOldDedupKeys } from '../database/dedup-keys.ts';
import { forgetOldMinutes } from '../database/endpoint-health.ts';
import { forgetOldIdempotencyKeys } from '../database/idempotency-keys.ts';
import { ensurePartitions } from '../database/maintenance.ts';
import { forgetSpentPacing } from '../database/send-pacing.ts';
import type { Logger } from './logger.ts';
import { type Loop, startLoop } from './loop.ts';

const HOUR_MS = 3_600_000;

/** For charts; the breaker looks at the last five minutes only. */
const MINUTES_KEPT_DAYS = 90;

/** Hourly: partitions for the coming days, and an end to what nothing can ask for any more. */
export function startHousekeeping(database: Database, logger: Logger): Loop {
  return startLoop({
    name: 'housekeeping',
    pollMs: HOUR_MS,
    logger,
    turn: async () => {
      await ensurePartitions(database);
      await forgetOldDedupKeys(database);
      await forgetOldMinutes(database, MINUTES_KEPT_DAYS);
      await forgetOldIdempotencyKeys(database);
      await forgetSpentPacing(database);
      return false;
    },
  });
}
