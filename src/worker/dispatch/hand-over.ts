import { makeDueFinder } from '../../deliveries/loop/due-finder.ts';
import type { EndpointLimiter } from '../../deliveries/loop/endpoint-limiter.ts';
import { type HandedOver, handOverDue, handOverProbes } from '../../deliveries/queue/hand-over.ts';
import { returnUnattempted } from '../../deliveries/queue/hand-over-returns.ts';
import { type Starts, type StartTools, startDeliveries } from './start-deliveries.ts';

/** What one hanging endpoint may hold. */
const FIRST_ATTEMPTS_PER_ENDPOINT = 10;
const PROBES_AT_ONCE = 20;
const PROBE_POLL_MS = 1_000;

/** Lets due probes go, once a second; returns why starts failed, if they did. */
export function makeProber(tools: StartTools): () => Promise<Error | null> {
  let probedMs = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - probedMs <= PROBE_POLL_MS) return null;
    probedMs = performance.now();
    return (await startOrReturn(tools, await handOverProbes(tools.database, PROBES_AT_ONCE))).failure;
  };
}

/** Hands at most so many due deliveries over, endpoints in turn. */
export function makeHandOver(
  tools: StartTools & { limiter: EndpointLimiter },
): (limit: number) => Promise<Starts> {
  const { database, limiter } = tools;
  const due = makeDueFinder({ database, limiter });
  return async (limit) => {
    const shares = await due.find(limit);
    const limits = { limit, firstAttemptsPerEndpoint: FIRST_ATTEMPTS_PER_ENDPOINT, shares };
    const deliveries = shares.length === 0 ? [] : await handOverDue(database, limits);
    due.took(shares, deliveries, limit);
    for (const { endpointId } of deliveries) limiter.spend(endpointId, 1);
    const starts = await startOrReturn(tools, deliveries);
    // What was not started is not sent.
    for (const { endpointId } of starts.returned) limiter.spend(endpointId, -1);
    return starts;
  };
}

async function startOrReturn(tools: StartTools, deliveries: readonly HandedOver[]): Promise<Starts> {
  return await startDeliveries(tools, deliveries, {
    giveBack: (ids) => returnUnattempted(tools.database, ids),
    runsAlready: 'return',
  });
}
