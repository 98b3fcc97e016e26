import type { SendResult } from './send-result.ts';

/** Most attempts side by side to one endpoint and process, unless the endpoint says otherwise. */
const MAX_IN_FLIGHT = 100;

/** An endpoint that nothing is known of, and one that just came back: successes raise it quickly. */
export const FIRST_LIMIT = 10;
const LIMIT_AFTER_RECOVERY = 1;

/** An endpoint that takes this long for an answer gets no more at once, whatever it answers. */
const SLOW_MS = 2_000;
const SLOW_LIMIT = 10;

/** Weight of the newest attempt in the mean duration. */
const NEWEST_WEIGHT = 0.2;

/** What the tenant allows. */
export type EndpointLimits = { maxInFlight: number | null; ratePerSecond: number | null };

type State = {
  limit: number;
  inFlight: number;
  meanMs: number;
  tokens: number;
  refilledMs: number;
  usedMs: number;
};

export type EndpointLimiter = {
  /** What these endpoints' tenants allow; for those that never came up here, nothing is limited. */
  allow(limits: ReadonlyMap<string, EndpointLimits>): void;
  /** The same for all endpoints: what is not named is not limited any more. Forgets what was not used lately. */
  allowOnly(limits: ReadonlyMap<string, EndpointLimits>): void;
  /** Attempts that may be started now. */
  free(endpointId: string): number;
  start(endpointId: string): void;
  /** The attempt is over; null: it was not sent. */
  end(endpointId: string, result: SendResult | null): void;
  /** Attempts that workflows make: they count against the rate only. */
  spend(endpointId: string, attempts: number): void;
  /** What came of such an attempt in this process. */
  learn(endpointId: string, result: SendResult): void;
  /** The endpoint was switched on: it gets its speed back step by step. */
  restart(endpointId: string): void;
  /** What endpoints may get now: those used lately or limited by their tenants; the others have the first limit. */
  slots(most: number): { endpointIds: string[]; free: number[]; otherwise: number };
  /** How many processes share what tenants allow; at least 1. */
  shareWith(processes: number): void;
};

const FORGET_AFTER_MS = 60_000;

/**
 * How many attempts may be under way per endpoint in this process. The limit grows by one per success and halves on
 * time-outs, 429 and 503, so a fast tenant gets its speed and a hanging one holds few slots of many.
 */
export function makeEndpointLimiter(now: () => number = () => performance.now()): EndpointLimiter {
  const states = new Map<string, State>();
  const allowed = new Map<string, EndpointLimits>();
  let processes = 1;
  const stateOf = (endpointId: string): State => {
    const known = states.get(endpointId);
    if (known !== undefined) return known;
    const at = now();
    const fresh = { limit: FIRST_LIMIT, inFlight: 0, meanMs: 0, tokens: 1, refilledMs: at, usedMs: at };
    states.set(endpointId, fresh);
    return fresh;
  };
  const limitsOf = (endpointId: string) => allowed.get(endpointId) ?? UNLIMITED;
  const free = (endpointId: string) => {
    const state = stateOf(endpointId);
    const limits = limitsOf(endpointId);
    return Math.max(
      0,
      Math.min(ceiling(state, limits, processes) - state.inFlight, refill(state, limits, now(), processes)),
    );
  };
  const isLimited = ([id]: [string, State]) => {
    const { maxInFlight, ratePerSecond } = limitsOf(id);
    return maxInFlight !== null || ratePerSecond !== null;
  };
  const isInUse = (entry: [string, State]) =>
    entry[1].inFlight > 0 || entry[1].usedMs > now() - FORGET_AFTER_MS || isLimited(entry);
  const allow = (limits: ReadonlyMap<string, EndpointLimits>) => {
    for (const [endpointId, limit] of limits) {
      allowed.set(endpointId, limit);
      stateOf(endpointId);
    }
  };
  return {
    allow,
    allowOnly(limits) {
      allowed.clear();
      allow(limits);
      for (const entry of states) if (!isInUse(entry)) states.delete(entry[0]);
    },
    free,
    start(endpointId) {
      const state = stateOf(endpointId);
      state.inFlight += 1;
      state.usedMs = now();
      state.tokens -= 1;
    },
    end(endpointId, result) {
      const state = stateOf(endpointId);
      state.inFlight -= 1;
      // What was not sent does not count against the rate.
      if (result === null) state.tokens += 1;
      else adapt(state, limitsOf(endpointId), result);
    },
    spend(endpointId, attempts) {
      stateOf(endpointId).tokens -= attempts;
    },
    learn(endpointId, result) {
      const state = stateOf(endpointId);
      state.usedMs = now();
      adapt(state, limitsOf(endpointId), result);
    },
    restart(endpointId) {
      const state = stateOf(endpointId);
      state.limit = LIMIT_AFTER_RECOVERY;
      state.usedMs = now();
    },
    slots(most) {
      const used = [...states].filter(isInUse);
      const endpointIds = used.map(([id]) => id);
      return { endpointIds, free: endpointIds.map((id) => Math.min(free(id), most)), otherwise: FIRST_LIMIT };
    },
    shareWith(count) {
      processes = Math.max(1, count);
    },
  };
}

const UNLIMITED: EndpointLimits = { maxInFlight: null, ratePerSecond: null };

/** With more processes than a tenant allows attempts at once, each may make one. */
function ceiling(state: State, { maxInFlight }: EndpointLimits, processes: number): number {
  const share = maxInFlight === null ? MAX_IN_FLIGHT : Math.max(1, Math.floor(maxInFlight / processes));
  const most = Math.min(state.limit, share);
  return state.meanMs > SLOW_MS ? Math.min(most, SLOW_LIMIT) : most;
}

/** Whole tokens of the endpoint's rate limit; as many as wanted when it has none. At most a second's worth is saved up. */
function refill(state: State, { ratePerSecond }: EndpointLimits, nowMs: number, processes: number): number {
  if (ratePerSecond === null) {
    state.tokens = 0;
    return Number.POSITIVE_INFINITY;
  }
  const rate = ratePerSecond / processes;
  const earned = ((nowMs - state.refilledMs) / 1_000) * rate;
  state.tokens = Math.min(Math.max(1, rate), state.tokens + earned);
  state.refilledMs = nowMs;
  return Math.floor(state.tokens);
}

function adapt(state: State, { maxInFlight }: EndpointLimits, result: SendResult): void {
  const { totalMs } = result.timings;
  state.meanMs = state.meanMs === 0 ? totalMs : state.meanMs + NEWEST_WEIGHT * (totalMs - state.meanMs);
  if (isOverload(result)) state.limit = Math.max(1, Math.floor(state.limit / 2));
  else if (result.outcome === 'response' && result.statusCode >= 200 && result.statusCode < 300) {
    state.limit = Math.min(maxInFlight ?? MAX_IN_FLIGHT, state.limit + 1);
  }
}

function isOverload(result: SendResult): boolean {
  if (result.outcome === 'error') return result.errorClass === 'timeout';
  return result.statusCode === 429 || result.statusCode === 503;
}
