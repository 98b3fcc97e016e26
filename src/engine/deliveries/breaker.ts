import { nextDelayMs } from '../../platform/retry-schedule.ts';
import type { EndpointCounts } from '../endpoint/endpoint-health.ts';

const MINUTE_MS = 60_000;

/** Share and least number of failures, within some minutes, at which an endpoint is taken for down. */
export const BREAKER = { share: 0.7, leastFailures: 10, minutes: 5 };

/** An endpoint that hangs holds slots and connections for a time-out each, so this many in a row are enough. */
const TIMEOUTS_IN_A_ROW = 5;

/** After thousands of successes within the minutes that are looked at, the share alone would take thousands of failures. */
const FAILURES_IN_A_ROW = 30;

/** `inARow`: its failures since the last success. */
type Minute = { minute: number; successes: number; failures: number; inARow: number };

type CountedAttempt = {
  deliveryId: string;
  ok: boolean;
  timedOut?: boolean;
  /** Whether its failure was counted lately, see isRepetition: the breaker counts deliveries, not their attempts. */
  isRepetition: boolean;
  durationMs: number;
};

/**
 * Whether a failure of a delivery that has used up `retriesUsed` retries adds nothing to the breaker's count: by the schedule,
 * one of its earlier failures was counted within the minutes that the breaker looks at.
 */
export function isRepetition(schedule: readonly number[], retriesUsed: number): boolean {
  let sinceCountedMs = 0;
  for (const waitMs of schedule.slice(0, retriesUsed)) {
    if (sinceCountedMs >= BREAKER.minutes * MINUTE_MS) sinceCountedMs = 0;
    sinceCountedMs += waitMs;
  }
  return retriesUsed > 0 && sinceCountedMs < BREAKER.minutes * MINUTE_MS;
}

export type EndpointHealth = ReturnType<typeof makeEndpointHealth>;

/** This process's view of how its attempts went; the database has that of all (endpoint_minutes). */
export function makeEndpointHealth(now: () => number = Date.now) {
  const windows = new Map<string, Minute[]>();
  const timeouts = new Map<string, Set<string>>();
  let deltas = new Map<string, EndpointCounts>();

  const count = (endpointId: string, minute: number, { ok, isRepetition }: CountedAttempt): Minute[] => {
    const window = (windows.get(endpointId) ?? []).filter((m) => m.minute > minute - BREAKER.minutes);
    let current = window.at(-1);
    if (current?.minute !== minute) {
      current = { minute, successes: 0, failures: 0, inARow: 0 };
      window.push(current);
    }
    if (ok) current.successes += 1;
    if (ok) for (const counted of window) counted.inARow = 0;
    if (!ok && !isRepetition) {
      current.failures += 1;
      current.inARow += 1;
    }
    windows.set(endpointId, window);
    return window;
  };

  const timeoutsInARow = (endpointId: string, { deliveryId, timedOut }: CountedAttempt): number => {
    if (timedOut) timeouts.set(endpointId, (timeouts.get(endpointId) ?? new Set()).add(deliveryId));
    else timeouts.delete(endpointId);
    return timeouts.get(endpointId)?.size ?? 0;
  };

  return {
    /** Counts an attempt; true when with it the endpoint has to be taken for down. Counting then starts again from zero. */
    record(endpointId: string, attempt: CountedAttempt): boolean {
      const { ok } = attempt;
      const minute = Math.floor(now() / MINUTE_MS);
      addDelta(deltas, endpointId, attempt);
      const window = count(endpointId, minute, attempt);
      const hangs = timeoutsInARow(endpointId, attempt) >= TIMEOUTS_IN_A_ROW;
      if (ok || !(hangs || isDown(window))) return false;
      windows.delete(endpointId);
      timeouts.delete(endpointId);
      return true;
    },
    drain(): EndpointCounts[] {
      const drained = [...deltas.values()];
      deltas = new Map();
      return drained;
    },
  };
}

function addDelta(
  deltas: Map<string, EndpointCounts>,
  endpointId: string,
  { ok, isRepetition, durationMs }: CountedAttempt,
): void {
  const none = { endpointId, successes: 0, failures: 0, failedDeliveries: 0, totalMs: 0 };
  const delta = deltas.get(endpointId) ?? none;
  if (ok) delta.successes += 1;
  else delta.failures += 1;
  if (!ok && !isRepetition) delta.failedDeliveries += 1;
  delta.totalMs += durationMs;
  deltas.set(endpointId, delta);
}

function isDown(window: readonly Minute[]): boolean {
  const sumOf = (counted: 'failures' | 'successes' | 'inARow') =>
    window.reduce((sum, minute) => sum + minute[counted], 0);
  const [failures, successes] = [sumOf('failures'), sumOf('successes')];
  if (sumOf('inARow') >= FAILURES_IN_A_ROW) return true;
  return failures >= BREAKER.leastFailures && failures >= BREAKER.share * (failures + successes);
}

/** How soon a receiver that was down is noticed to be back, and how little it is bothered meanwhile. */
const LONGEST_PROBE_WAIT_MS = 5 * MINUTE_MS;

/** Ms until the next probe of an endpoint whose probes failed `failures` times in a row. */
export function probeDelayMs(schedule: readonly number[], failures: number, random: () => number): number {
  const last = Math.max(schedule.length, 1);
  const step = nextDelayMs({
    schedule,
    attemptsMade: Math.min(failures + 1, last),
    retryAfterMs: null,
    random,
  });
  return Math.min(step ?? LONGEST_PROBE_WAIT_MS, LONGEST_PROBE_WAIT_MS);
}
