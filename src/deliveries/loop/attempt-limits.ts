import { isTimeout, type SendResult } from '../sender/http-sender.ts';

/** Most attempts side by side to one endpoint and process, unless the endpoint says otherwise. */
const MAX_IN_FLIGHT = 100;

/** An endpoint that nothing is known of, and one that just came back: successes raise it quickly. */
export const FIRST_LIMIT = 10;
const LIMIT_AFTER_RECOVERY = 1;

/** An endpoint that takes this long for an answer, or has kept one waiting for so long, gets no more at once. */
const SLOW_MS = 2_000;
const SLOW_LIMIT = 10;

/** Weight of the newest attempt in the mean duration. */
const NEWEST_WEIGHT = 0.2;

/** What the tenant allows. */
export type EndpointLimits = { maxInFlight: number | null; ratePerSecond: number | null };

/** An attempt under way. */
export type UnderWay = { readonly endpointId: string; readonly startMs: number };

type State = {
  limit: number;
  /** Oldest first. */
  underWay: Set<UnderWay>;
  meanMs: number;
  tokens: number;
  refilledMs: number;
  usedMs: number;
};

export type EndpointLimiter = {
  /** What these endpoints' tenants allow; for those that never came up here, nothing is limited. */
  allow(limits: ReadonlyMap<string, EndpointLimits>): void;
  /** Attempts that may be started now. */
  free(endpointId: string): number;
  start(endpointId: string): UnderWay;
  /** The attempt is over; null: it was not sent. */
  end(attempt: UnderWay, result: SendResult | null): void;
  /** Attempts that workflows make: they count against the rate only. */
  spend(endpointId: string, attempts: number): void;
  /** What came of such an attempt in this process. */
  learn(endpointId: string, result: SendResult): void;
  /** The endpoint was switched on: it gets its speed back step by step. */
  restart(endpointId: string): void;
  /** How many processes share what tenants allow, at least 1, and how many of them come before this one. */
  shareWith(processes: number, rank?: number): void;
  /** Forgets how those did that were not used lately, but not what their tenants allow. */
  forgetUnused(): void;
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
  let rank = 0;
  const stateOf = (endpointId: string): State => {
    const known = states.get(endpointId);
    if (known !== undefined) return known;
    const at = now();
    const fresh = {
      ...{ limit: FIRST_LIMIT, underWay: new Set<UnderWay>(), meanMs: 0 },
      ...{ tokens: 1, refilledMs: at, usedMs: at },
    };
    states.set(endpointId, fresh);
    return fresh;
  };
  const limitsOf = (endpointId: string) => allowed.get(endpointId) ?? UNLIMITED;
  return {
    allow(limits) {
      for (const [endpointId, limit] of limits) {
        const isLimited = limit.maxInFlight !== null || limit.ratePerSecond !== null;
        if (isLimited) allowed.set(endpointId, limit);
        else allowed.delete(endpointId);
      }
    },
    free(endpointId) {
      const state = stateOf(endpointId);
      const limits = limitsOf(endpointId);
      const share = shareOf(limits, endpointId, { processes, rank });
      const room = ceiling(state, share, now()) - state.underWay.size;
      return Math.max(0, Math.min(room, refill(state, limits, now(), processes)));
    },
    start(endpointId) {
      const state = stateOf(endpointId);
      const attempt = { endpointId, startMs: now() };
      state.underWay.add(attempt);
      state.usedMs = attempt.startMs;
      state.tokens -= 1;
      return attempt;
    },
    end(attempt, result) {
      const { endpointId } = attempt;
      const state = stateOf(endpointId);
      state.underWay.delete(attempt);
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
    shareWith(count, before = 0) {
      processes = Math.max(1, count);
      rank = before;
    },
    forgetUnused() {
      const usedBefore = now() - FORGET_AFTER_MS;
      for (const [endpointId, state] of states) {
        if (state.underWay.size > 0 || state.usedMs > usedBefore) continue;
        if (isRested(state, limitsOf(endpointId), now(), processes)) states.delete(endpointId);
      }
    },
  };
}

const UNLIMITED: EndpointLimits = { maxInFlight: null, ratePerSecond: null };

/** What is left over after an even division goes to other processes from one endpoint to the next. */
function shareOf(
  { maxInFlight }: EndpointLimits,
  endpointId: string,
  { processes, rank }: { processes: number; rank: number },
): number {
  if (maxInFlight === null) return MAX_IN_FLIGHT;
  const place = (rank + Number(BigInt(endpointId) % BigInt(processes))) % processes;
  return Math.floor(maxInFlight / processes) + (place < maxInFlight % processes ? 1 : 0);
}

function ceiling(state: State, share: number, nowMs: number): number {
  const most = Math.min(state.limit, share);
  return isSlow(state, nowMs) ? Math.min(most, SLOW_LIMIT) : most;
}

/** An endpoint that begins to hang is slow before the first of its attempts ends. */
function isSlow({ meanMs, underWay }: State, nowMs: number): boolean {
  if (meanMs > SLOW_MS) return true;
  const [oldest] = underWay;
  return oldest !== undefined && nowMs - oldest.startMs > SLOW_MS;
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

/** Whether an endpoint that nothing is known of might have as many. */
function isRested(state: State, limits: EndpointLimits, nowMs: number, processes: number): boolean {
  return (
    refill(state, limits, nowMs, processes) >=
    Math.max(1, Math.floor((limits.ratePerSecond ?? 1) / processes))
  );
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
  if (result.outcome === 'error') return isTimeout(result);
  return result.statusCode === 429 || result.statusCode === 503;
}

/** Attempts of one process side by side; they mostly wait for the network. */
const SLOTS = 512;

/** One that takes longer waits for a receiver that is slow; others need its slot more. */
const LONG_MS = 500;

/** Long ones included: each holds a connection and its body. */
const MOST_SLOTS = 4_096;

/** Answered and not recorded yet: what is claimed beyond what the database takes would outlive its lease. */
const MOST_ANSWERED = 1_024;

export type AttemptSlots = {
  take(attempt: UnderWay): void;
  /** The attempt waits for nobody outside any more, but is to be recorded. */
  answered(attempt: UnderWay): void;
  giveBack(attempt: UnderWay): void;
  /** Attempts that may be started now. */
  free(): number;
  taken(): number;
};

/**
 * Bounds what one process has under way. Endpoints that begin to hang together would fill any number of slots
 * until their first time-outs, so what waits long for its answer does not count.
 */
export function makeAttemptSlots(
  { quick: quickSlots, most }: { quick: number; most: number } = { quick: SLOTS, most: MOST_SLOTS },
  now: () => number = () => performance.now(),
): AttemptSlots {
  /** Oldest first. */
  const waiting = new Set<UnderWay>();
  const waitingLong = new Set<UnderWay>();
  const answered = new Set<UnderWay>();
  const answeredLate = new Set<UnderWay>();
  const taken = () => waiting.size + waitingLong.size + answered.size + answeredLate.size;
  return {
    take: (attempt) => void waiting.add(attempt),
    answered(attempt) {
      if (waiting.delete(attempt)) answered.add(attempt);
      else if (waitingLong.delete(attempt)) answeredLate.add(attempt);
    },
    giveBack(attempt) {
      for (const set of [answered, waiting, waitingLong, answeredLate]) if (set.delete(attempt)) return;
    },
    free() {
      const longSinceMs = now() - LONG_MS;
      for (const attempt of waiting) {
        if (attempt.startMs > longSinceMs) break;
        waiting.delete(attempt);
        waitingLong.add(attempt);
      }
      const quick = quickSlots - waiting.size - answered.size;
      const unrecorded = MOST_ANSWERED - answered.size - answeredLate.size;
      return Math.max(0, Math.min(quick, unrecorded, most - taken()));
    },
    taken,
  };
}
