import { type HandedOver, handOverDue, handOverProbes } from '../../database/delivery-claims.ts';
import { returnUnattempted } from '../../database/hand-over-returns.ts';
import type { EndpointLimiter } from '../../webhooks/endpoint-limiter.ts';
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
  let lastEndpointId = '0';
  return async (limit) => {
    const slots = limiter.slots(FIRST_ATTEMPTS_PER_ENDPOINT);
    const limits = { limit, firstAttemptsPerEndpoint: FIRST_ATTEMPTS_PER_ENDPOINT, slots };
    const deliveries = await handOverDue(database, limits, lastEndpointId);
    lastEndpointId = lastInTurn(deliveries, lastEndpointId);
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
