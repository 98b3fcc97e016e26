import type { Database } from '../../database/database.ts';
import { type HandedOver, handOverDue, handOverProbes, returnToDue } from '../../database/delivery-claims.ts';
import { hasDue } from '../../database/session-claims.ts';
import type { EndpointLimiter } from '../../webhooks/endpoint-limiter.ts';
import type { DeliverySession } from '../../webhooks/session/delivery-session.ts';
import type { Logger } from '../logger.ts';
import { type Loop, startLoop } from '../loop.ts';
import { makeBacklogWatch } from './backlog-watch.ts';
import type { StartAllowance } from './start-allowance.ts';
import { startDeliveries } from './start-deliveries.ts';
import type { DeliveryStarter } from './start-delivery.ts';
import type { SessionStarter } from './start-session.ts';

export type DispatcherTools = Omit<DeliveryStarter, 'eager'> & {
  database: Database;
  logger: Logger;
  session: DeliverySession;
  limiter: EndpointLimiter;
  sessionStarter: SessionStarter;
  /** Null: one workflow per delivery at any rate. */
  allowance: StartAllowance | null;
  /** Whether another process runs a session. */
  sessionElsewhere: () => boolean;
};

/** Bounds what Temporal has to take at once, and what one hanging endpoint may hold. */
const MAX_STARTS = 100;
const FIRST_ATTEMPTS_PER_ENDPOINT = 10;
const PROBES_AT_ONCE = 20;

/** Beside the wake-ups: finds what another process queued or settled. */
const POLL_MS = 250;
const PROBE_POLL_MS = 1_000;

/**
 * Brings due deliveries on their way: each in a workflow of its own while the allowance and the endpoint's share
 * last, beyond it by a session, until that has been idle for a while. Probes go out by workflow in either case.
 */
export function startDispatcher(tools: DispatcherTools): Loop {
  let lastEndpointId = '0';
  let probedMs = 0;
  const backlog = makeBacklogWatch(tools);
  const handOver = async (limit: number): Promise<number> => {
    const limits = { limit, firstAttemptsPerEndpoint: FIRST_ATTEMPTS_PER_ENDPOINT };
    const slots = tools.limiter.slots(FIRST_ATTEMPTS_PER_ENDPOINT);
    const deliveries = await handOverDue(tools.database, { ...limits, slots }, lastEndpointId);
    for (const { endpointId } of deliveries) tools.limiter.spend(endpointId, 1);
    lastEndpointId = lastInTurn(deliveries, lastEndpointId);
    await startOrReturn(tools, deliveries);
    return deliveries.length;
  };
  return startLoop({
    name: 'dispatcher',
    pollMs: POLL_MS,
    logger: tools.logger,
    turn: async () => {
      if (performance.now() - probedMs > PROBE_POLL_MS) {
        probedMs = performance.now();
        await startOrReturn(tools, await handOverProbes(tools.database, PROBES_AT_ONCE));
      }
      if (tools.allowance === null) return (await handOver(MAX_STARTS)) > 0;
      if (tools.session.isActive()) {
        tools.sessionStarter.arrived();
        tools.session.wake();
        return false;
      }
      if (!tools.sessionElsewhere()) {
        const limit = Math.min(tools.allowance.available(), MAX_STARTS);
        if (limit > 0) tools.allowance.spend(await handOver(limit));
        if (tools.allowance.available() > 0 && !(await backlog.isBehind())) return false;
      }
      backlog.reset();
      if (await hasDue(tools.database)) await tools.sessionStarter.start();
      return false;
    },
  });
}

async function startOrReturn(tools: DispatcherTools, deliveries: readonly HandedOver[]): Promise<void> {
  await startDeliveries(tools, deliveries, (ids) => returnToDue(tools.database, ids));
}

/** The endpoint that the turn ended with: those above where it began come first, then it starts from below. */
function lastInTurn(deliveries: readonly HandedOver[], after: string): string {
  const turn = (id: bigint) => (id <= BigInt(after) ? 1 : 0);
  let last: bigint | null = null;
  for (const { endpointId } of deliveries) {
    const id = BigInt(endpointId);
    if (last === null || turn(id) > turn(last) || (turn(id) === turn(last) && id > last)) last = id;
  }
  return last?.toString() ?? '0';
}
