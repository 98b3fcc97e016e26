import { isTimeout, type SendResult } from '../../../platform/sender/http-sender.ts';
import type { EndpointLimits } from '../../endpoint/endpoint-settings.ts';
import type { WorkflowMode } from '../../endpoint/workflow-mode.ts';

/** Most attempts side by side to one endpoint and process, unless the endpoint says otherwise. */
const MAX_IN_FLIGHT = 100;

/** An endpoint that nothing is known of, and one that just came back: successes raise it quickly. */
export const FIRST_LIMIT = 10;
const LIMIT_AFTER_RECOVERY = 1;

/** An endpoint that takes this long to respond, or has kept an attempt waiting for so long, gets no more at once. */
const SLOW_MS = 2_000;
const SLOW_LIMIT = 10;

const NEWEST_WEIGHT = 0.2;

export type UnderWay = { readonly endpointId: string; readonly startMs: number };

type State = {
  limit: number;
  /** Oldest first. */
  underWay: Set<UnderWay>;
  /** Attempts that are over, and whose results others keep from being recorded. */
  held: Set<UnderWay>;
  meanMs: number;
  tokens: number;
  refilledMs: number;
  usedMs: number;
  restsUntilMs: number;
};

const FORGET_AFTER_MS = 60_000;

/** Results that others keep from being recorded: an endpoint with as many gets no more attempts until some are recorded. */
const MOST_HELD_OF_ENDPOINT = 10;

/**
 * How many attempts may be under way per endpoint in this process. The limit grows by one per success and halves on
 * time-outs, 429 and 503, so a fast tenant gets its speed and a hanging one holds few slots of many.
 */
export class EndpointLimiter {
  readonly #now: () => number;
  readonly #states = new Map<string, State>();
  readonly #allowed = new Map<string, EndpointLimits>();
  #processes = 1;
  #rank = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** The limits of an endpoint's tenant; for one that never came up here, nothing is limited. */
  allow(endpointId: string, { maxInFlight, ratePerSecond, workflows }: EndpointLimits): void {
    if ((maxInFlight ?? ratePerSecond ?? workflows) === null) this.#allowed.delete(endpointId);
    else this.#allowed.set(endpointId, { maxInFlight, ratePerSecond, workflows });
  }

  /** Which deliveries of the endpoint get a run; null: as the installation says, or nothing is known of it. */
  workflowsOf(endpointId: string): WorkflowMode | null {
    return this.#limitsOf(endpointId).workflows;
  }

  free(endpointId: string): number {
    const state = this.#stateOf(endpointId);
    if (state.restsUntilMs > this.#now() || state.held.size >= MOST_HELD_OF_ENDPOINT) return 0;
    const most = Math.min(state.limit, this.#share(endpointId));
    const room = (this.#isSlow(state) ? Math.min(most, SLOW_LIMIT) : most) - state.underWay.size;
    return Math.max(0, Math.min(room, this.#refill(endpointId)));
  }

  /** For how long nothing can be started that no end of an attempt allows: 0 unless its rate limit or its share forbid it. */
  waitMs(endpointId: string): number {
    const state = this.#stateOf(endpointId);
    const nowMs = this.#now();
    if (state.restsUntilMs > nowMs) return state.restsUntilMs - nowMs;
    const hasToken = this.#refill(endpointId) >= 1;
    const mayEnd = state.underWay.size + state.held.size > 0;
    if (hasToken) return mayEnd || this.free(endpointId) > 0 ? 0 : Number.POSITIVE_INFINITY;
    return ((1 - state.tokens) * 1_000) / (this.#rate(endpointId) ?? 1);
  }

  start(endpointId: string): UnderWay {
    const state = this.#stateOf(endpointId);
    const attempt = { endpointId, startMs: this.#now() };
    state.underWay.add(attempt);
    state.usedMs = attempt.startMs;
    state.tokens -= 1;
    return attempt;
  }

  /** The attempt is over; null: it was not sent, and does not count against the rate. */
  end(attempt: UnderWay, result: SendResult | null): void {
    const { endpointId } = attempt;
    const state = this.#stateOf(endpointId);
    state.underWay.delete(attempt);
    if (result === null) state.tokens += 1;
    else adapt(state, this.#limitsOf(endpointId), result);
  }

  /** The attempt is over, and others keep its result from being recorded, until `release`. */
  hold(attempt: UnderWay): void {
    this.#stateOf(attempt.endpointId).held.add(attempt);
  }

  release(attempt: UnderWay): void {
    this.#states.get(attempt.endpointId)?.held.delete(attempt);
  }

  /** The endpoint was switched on: it gets its speed back step by step. */
  restart(endpointId: string): void {
    const state = this.#stateOf(endpointId);
    state.limit = LIMIT_AFTER_RECOVERY;
    state.usedMs = this.#now();
  }

  rest(endpointId: string, forMs: number): void {
    const state = this.#stateOf(endpointId);
    state.usedMs = this.#now();
    state.restsUntilMs = state.usedMs + forMs;
  }

  /** How many processes share what tenants allow, at least 1, and how many of them come before this one. */
  shareWith(processes: number, rank = 0): void {
    this.#processes = Math.max(1, processes);
    this.#rank = rank;
  }

  /** Forgets how those did that were not used lately, but not what their tenants allow. */
  forgetUnused(): void {
    const usedBefore = this.#now() - FORGET_AFTER_MS;
    for (const [endpointId, state] of this.#states) {
      if (state.underWay.size + state.held.size > 0 || state.usedMs > usedBefore) continue;
      // An endpoint that nothing is known of might have as many.
      const isRested = this.#refill(endpointId) >= Math.max(1, Math.floor(this.#rate(endpointId) ?? 1));
      if (isRested) this.#states.delete(endpointId);
    }
  }

  #stateOf(endpointId: string): State {
    const known = this.#states.get(endpointId);
    if (known !== undefined) return known;
    const now = this.#now();
    const fresh = {
      limit: FIRST_LIMIT,
      underWay: new Set<UnderWay>(),
      held: new Set<UnderWay>(),
      meanMs: 0,
      tokens: 1,
      refilledMs: now,
      usedMs: now,
      restsUntilMs: 0,
    };
    this.#states.set(endpointId, fresh);
    return fresh;
  }

  #limitsOf(endpointId: string): EndpointLimits {
    return this.#allowed.get(endpointId) ?? UNLIMITED;
  }

  /** The rest of an even division goes to other processes from one endpoint to the next. */
  #share(endpointId: string): number {
    const { maxInFlight } = this.#limitsOf(endpointId);
    if (maxInFlight === null) return MAX_IN_FLIGHT;
    const place = (this.#rank + Number(BigInt(endpointId) % BigInt(this.#processes))) % this.#processes;
    return Math.floor(maxInFlight / this.#processes) + (place < maxInFlight % this.#processes ? 1 : 0);
  }

  /** This process's part of what the tenant allows per second; null: all that comes. */
  #rate(endpointId: string): number | null {
    const { ratePerSecond } = this.#limitsOf(endpointId);
    return ratePerSecond === null ? null : ratePerSecond / this.#processes;
  }

  /** Whole tokens of the rate; as many as wanted where there is none. At most a second's worth is saved up. */
  #refill(endpointId: string): number {
    const state = this.#stateOf(endpointId);
    const rate = this.#rate(endpointId);
    const nowMs = this.#now();
    const earned = ((nowMs - state.refilledMs) / 1_000) * (rate ?? 0);
    state.tokens = rate === null ? 0 : Math.min(Math.max(1, rate), state.tokens + earned);
    state.refilledMs = nowMs;
    return rate === null ? Number.POSITIVE_INFINITY : Math.floor(state.tokens);
  }

  /** An endpoint that begins to hang is slow before the first of its attempts ends. */
  #isSlow({ meanMs, underWay }: State): boolean {
    const [oldest] = underWay;
    return meanMs > SLOW_MS || (oldest !== undefined && this.#now() - oldest.startMs > SLOW_MS);
  }
}

const UNLIMITED: EndpointLimits = { maxInFlight: null, ratePerSecond: null, workflows: null };

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

/** How many attempts may be under way at once: those that began a moment ago, and all. */
type SlotBounds = { quick: number; most: number };

/** One that takes longer waits for a receiver that is slow; others need its slot more. */
const LONG_MS = 500;

/** Attempts mostly wait for the network; long ones hold a connection and a body each. */
const SLOTS: SlotBounds = { quick: 512, most: 4_096 };

/** Attempts that wait for their runs: Temporal is slower than the network, and others must not wait for it. */
const HOLDS: SlotBounds = { quick: 40, most: 180 };

/** Endpoints that are probed mostly hang or fail: all of them together leave three quarters of the slots to others. */
const PROBE_SHARE = 1 / 4;

/** The slots of a process; its probes, and what waits for its run, take one of theirs too. */
export function makeSlots() {
  const ofProbes = { quick: SLOTS.quick * PROBE_SHARE, most: SLOTS.most * PROBE_SHARE };
  return { all: new AttemptSlots(), probes: new AttemptSlots(ofProbes), holds: new AttemptSlots(HOLDS) };
}

/** Sent and not recorded yet: what is claimed beyond what the database takes would outlive its lease. */
const MOST_UNRECORDED = 1_024;

/** Results that others keep from being recorded, beside those: they are responses of some kB each. */
const MOST_HELD = 4_096;

/**
 * Bounds what one process has under way. Endpoints that begin to hang together would fill any number of slots
 * until their first time-outs, so what waits long for its response does not count.
 */
export class AttemptSlots {
  readonly #bounds: SlotBounds;
  readonly #now: () => number;
  /** Without a response, and not for long; oldest first. */
  readonly #fresh = new Set<UnderWay>();
  /** All, with how their responses came; null: they wait for them. */
  readonly #taken = new Map<UnderWay, 'soon' | 'late' | null>();
  readonly #unrecorded = { soon: 0, late: 0 };
  /** They take no slot. */
  readonly #held = new Set<UnderWay>();

  constructor(bounds = SLOTS, now = () => performance.now()) {
    this.#bounds = bounds;
    this.#now = now;
  }

  take(attempt: UnderWay): void {
    this.#fresh.add(attempt);
    this.#taken.set(attempt, null);
  }

  /** The attempt has its result, which is to be recorded. */
  responded(attempt: UnderWay): void {
    if (this.#taken.get(attempt) !== null) return;
    const came = this.#fresh.delete(attempt) ? 'soon' : 'late';
    this.#taken.set(attempt, came);
    this.#unrecorded[came] += 1;
  }

  /** Others keep the result of the attempt from being recorded: its slot is free for attempts of others. */
  hold(attempt: UnderWay): void {
    if (!this.#taken.has(attempt) || this.#held.size >= MOST_HELD) return;
    this.release(attempt);
    this.#held.add(attempt);
  }

  release(attempt: UnderWay): void {
    const came = this.#taken.get(attempt) ?? null;
    if (came !== null) this.#unrecorded[came] -= 1;
    this.#fresh.delete(attempt);
    this.#taken.delete(attempt);
    this.#held.delete(attempt);
  }

  free(): number {
    const longSinceMs = this.#now() - LONG_MS;
    for (const attempt of this.#fresh) {
      if (attempt.startMs > longSinceMs) break;
      this.#fresh.delete(attempt);
    }
    const { soon, late } = this.#unrecorded;
    const quick = this.#bounds.quick - this.#fresh.size - soon;
    return Math.max(0, Math.min(quick, MOST_UNRECORDED - soon - late, this.#bounds.most - this.#taken.size));
  }

  /** Attempts that are under way, or not recorded yet. */
  unfinished(): number {
    return this.#taken.size + this.#held.size;
  }
}
