import type { Database } from '../../database/database.ts';
import { returnRetryStarts, takeRetryStarts } from '../../database/retry-starts.ts';
import type { RetryLimits } from '../../webhooks/judge-outcome.ts';
import type { Logger } from '../logger.ts';
import { type Loop, startLoop } from '../loop.ts';
import { startDeliveries } from './start-deliveries.ts';
import type { DeliveryStarter } from './start-delivery.ts';

export type RetryStarterTools = Omit<DeliveryStarter, 'eager'> & {
  database: Database;
  logger: Logger;
  retryLimits: RetryLimits;
};

const BATCH = 50;
const POLL_MS = 1_000;

/** Starts the workflows of deliveries whose first attempt a session made without success, and of parked retries. */
export function startRetryStarter(tools: RetryStarterTools): Loop {
  return startLoop({
    name: 'retry-starter',
    pollMs: POLL_MS,
    logger: tools.logger,
    turn: async () => {
      const deliveries = await takeRetryStarts(tools.database, { ...tools.retryLimits, limit: BATCH });
      await startDeliveries(tools, deliveries, (ids) => returnRetryStarts(tools.database, ids));
      return deliveries.length === BATCH;
    },
  });
}
