import { makeEndpointHealth } from '../../src/engine/deliveries/breaker.ts';
import { EndpointLimiter } from '../../src/engine/deliveries/loop/attempt-limits.ts';
import { DeliveryLoop, type LoopTools } from '../../src/engine/deliveries/loop/delivery-loop.ts';
import { DeliveryRuns } from '../../src/engine/deliveries/loop/delivery-runs.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { query } from '../../src/platform/postgres/sql.ts';
import type { HttpSender } from '../../src/platform/sender/http-sender.ts';
import { silentLogger } from './silent-logger.ts';
import { testSecretBox } from './test-accounts.ts';

type Parts = { database: Database; sender: HttpSender } & Partial<LoopTools>;

/** A delivery loop that claims nothing by itself, and whose process does not know Temporal. */
export function idleLoop(parts: Parts): { loop: DeliveryLoop; tools: LoopTools } {
  const calm = { note: () => undefined, isCalm: () => false, shareWith: () => undefined };
  const tools: LoopTools = {
    logger: silentLogger,
    limiter: new EndpointLimiter(),
    secretBox: testSecretBox,
    defaults: { retryScheduleMs: [60_000], timeoutMs: 5_000, workflows: 'auto' as const },
    health: makeEndpointHealth(),
    runLimits: { perEndpoint: 20, overall: 200, mayStart: () => true, takeStart: () => true },
    gate: { isOpen: () => true, check: async () => true },
    onTrouble: () => undefined,
    worker: 'test',
    onAttempt: () => undefined,
    runs: new DeliveryRuns({ calm, onShown: () => undefined, onTrouble: () => undefined }),
    ...parts,
  };
  return { loop: new DeliveryLoop(tools), tools };
}

/** Attempts the first delivery of the queue as the activity of its run does. */
export async function attemptHead(database: Database, loop: DeliveryLoop) {
  const [head] = await query<{ deliveryId: string; deliveryDay: string }>(
    database,
    `select delivery_id as "deliveryId", delivery_day as "deliveryDay" from delivery_queue order by position limit 1`,
  );
  return await loop.attemptOne(head ?? { deliveryId: '', deliveryDay: '' });
}
