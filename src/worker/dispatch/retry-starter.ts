import type { RetryLimits } from '../../deliveries/attempt/judge-outcome.ts';
import { returnRetryStarts, takeRetryStarts } from '../../deliveries/queue/retry-starts.ts';
import { type Loop, startLoop } from '../loop.ts';
import { type StartTools, startDeliveries } from './start-deliveries.ts';

export type RetryStarterTools = StartTools & { retryLimits: RetryLimits };

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
      const { started, dropped, failure } = await startDeliveries(tools, deliveries, {
        giveBack: (ids) => returnRetryStarts(tools.database, ids),
        runsAlready: 'return',
      });
      if (failure !== null) throw failure;
      // When all were given back, they would only be taken again at once.
      return deliveries.length === BATCH && started.length + dropped > 0;
    },
  });
}
