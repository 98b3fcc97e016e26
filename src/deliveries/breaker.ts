import type { EndpointCounts } from '../endpoints/endpoint-health.ts';

/** Share and least number of failures, within some minutes, at which an endpoint is taken for down. */
export const BREAKER = { share: 0.7, leastFailures: 10, minutes: 5 };
const MINUTE_MS = 60_000;

/** An endpoint that hangs holds slots and connections for a time-out each, so this many in a row are enough. */
const TIMEOUTS_IN_A_ROW = 5;

type Minute = { minute: number; successes: number; failures: number };

type CountedAttempt = { ok: boolean; timedOut?: boolean; durationMs: number };

export type EndpointHealth = {
  /** Counts an attempt; true when with it the endpoint has to be taken for down. Counting then starts anew. */
  record(endpointId: string, attempt: CountedAttempt): boolean;
  /** What was counted since the last call. */
  drain(): EndpointCounts[];
};

/** This process's view of how its attempts went; the database has that of all (endpoint_minutes). */
export function makeEndpointHealth(now: () => number = Date.now): EndpointHealth {
  const windows = new Map<string, Minute[]>();
  const timeouts = new Map<string, number>();
  let deltas = new Map<string, EndpointCounts>();

  const count = (endpointId: string, minute: number, ok: boolean): Minute[] => {
    const window = (windows.get(endpointId) ?? []).filter((m) => m.minute > minute - BREAKER.minutes);
    let current = window.at(-1);
    if (current?.minute !== minute) {
      current = { minute, successes: 0, failures: 0 };
      window.push(current);
    }
    if (ok) current.successes += 1;
    else current.failures += 1;
    windows.set(endpointId, window);
    return window;
  };

  const timeoutsInARow = (endpointId: string, timedOut: boolean): number => {
    if (!timedOut) timeouts.delete(endpointId);
    else timeouts.set(endpointId, (timeouts.get(endpointId) ?? 0) + 1);
    return timeouts.get(endpointId) ?? 0;
  };

  return {
    record(endpointId, { ok, timedOut = false, durationMs }) {
      const minute = Math.floor(now() / MINUTE_MS);
      addDelta(deltas, endpointId, ok, durationMs);
      const window = count(endpointId, minute, ok);
      const hangs = timeoutsInARow(endpointId, timedOut) >= TIMEOUTS_IN_A_ROW;
      if (ok || !(hangs || isDown(window))) return false;
      windows.delete(endpointId);
      timeouts.delete(endpointId);
      return true;
    },
    drain() {
      const drained = [...deltas.values()];
      deltas = new Map();
      return drained;
    },
  };
}

function addDelta(
  deltas: Map<string, EndpointCounts>,
  endpointId: string,
  ok: boolean,
  durationMs: number,
): void {
  const delta = deltas.get(endpointId) ?? { endpointId, successes: 0, failures: 0, totalMs: 0 };
  if (ok) delta.successes += 1;
  else delta.failures += 1;
  delta.totalMs += durationMs;
  deltas.set(endpointId, delta);
}

function isDown(window: readonly Minute[]): boolean {
  const failures = window.reduce((sum, minute) => sum + minute.failures, 0);
  const successes = window.reduce((sum, minute) => sum + minute.successes, 0);
  return failures >= BREAKER.leastFailures && failures >= BREAKER.share * (failures + successes);
}
