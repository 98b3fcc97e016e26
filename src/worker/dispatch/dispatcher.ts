import type { DeliverySession } from '../../deliveries/loop/delivery-loop.ts';
import { makeDueWatch } from '../../deliveries/loop/due-finder.ts';
import type { EndpointLimiter } from '../../deliveries/loop/endpoint-limiter.ts';
import { type Loop, startLoop } from '../loop.ts';
import { makeBacklogWatch } from './backlog-watch.ts';
import { makeHandOver, makeProber } from './hand-over.ts';
import type { StartAllowance } from './start-allowance.ts';
import type { StartTools } from './start-deliveries.ts';
import type { SessionStarter } from './start-session.ts';

export type DispatcherTools = StartTools & {
  session: DeliverySession;
  limiter: EndpointLimiter;
  sessionStarter: SessionStarter;
  /** Null: one workflow per delivery at any rate. */
  allowance: StartAllowance | null;
  /** Whether another process runs a session. */
  sessionElsewhere: () => boolean;
};

/** Bounds what Temporal has to take at once. */
const MAX_STARTS = 100;

/** Beside the wake-ups: finds what another process queued or settled. */
const POLL_MS = 250;

/**
 * Brings due deliveries on their way: each in a workflow of its own while the allowance and the endpoint's share
 * last, beyond it by a session, until that has been idle for a while. Probes go out by workflow in either case.
 */
export function startDispatcher(tools: DispatcherTools): Loop {
  const probe = makeProber(tools);
  const handOver = makeHandOver(tools);
  const hasDue = makeDueWatch(tools);
  const backlog = makeBacklogWatch(hasDue);
  /** Returns whether there may be more at once, and why starts failed, if they did. */
  const bringOn = async (): Promise<{ more: boolean; failure: Error | null }> => {
    const { allowance, session, sessionStarter } = tools;
    if (allowance === null) {
      const { started, dropped, failure } = await handOver(MAX_STARTS);
      return { more: started.length + dropped > 0, failure };
    }
    if (session.isActive()) {
      sessionStarter.arrived();
      session.wake();
      return DONE;
    }
    let failure: Error | null = null;
    if (!tools.sessionElsewhere()) {
      const limit = Math.min(allowance.available(), MAX_STARTS);
      if (limit > 0) {
        const starts = await handOver(limit);
        allowance.spend(starts.started.length);
        failure = starts.failure;
      }
      // What workflows cannot carry, a session may: it is started with less.
      if (failure === null && allowance.available() > 0 && !(await backlog.isBehind())) return DONE;
    }
    backlog.reset();
    if (await hasDue()) await sessionStarter.start();
    return { more: false, failure };
  };
  return startLoop({
    name: 'dispatcher',
    pollMs: POLL_MS,
    logger: tools.logger,
    turn: async () => {
      const probes = await probe();
      const { more, failure } = await bringOn();
      const first = probes ?? failure;
      if (first !== null) throw first;
      return more;
    },
  });
}

const DONE = { more: false, failure: null };
