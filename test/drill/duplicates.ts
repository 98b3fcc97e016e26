import type { NemesisEvent } from './nemesis.ts';
import type { LoggedArrival } from './receivers.ts';

/** Why a receiver got something again that it had taken. */
export type DuplicateReason =
  | 'worker killed'
  | 'worker paused'
  | 'postgres killed'
  | 'temporal away'
  | 'other part away'
  | 'part crashed'
  | 'answer near the time-out'
  | 'unexplained';

export type Duplicate = { arrival: LoggedArrival; reason: DuplicateReason };

/** What may explain one: deeds of the nemesis, and parts that ended by themselves. */
export type Disturbance = { reason: DuplicateReason; fromMs: number; toMs: number };

/** The result of an attempt is recorded soon after the answer; a part that is back still catches up for a moment. */
const BEFORE_MS = 200;
const AFTER_MS = 1_500;

const REASONS: Record<NemesisEvent['target'], DuplicateReason> = {
  all: 'worker killed',
  'worker-1': 'worker killed',
  'worker-2': 'worker killed',
  postgres: 'postgres killed',
  temporal: 'temporal away',
  api: 'other part away',
  minio: 'other part away',
};
/** When several things went on, the first of these is named. */
const LIKELIEST: readonly DuplicateReason[] = [
  'worker killed',
  'worker paused',
  'postgres killed',
  'part crashed',
  'temporal away',
  'other part away',
];

export function disturbancesOf(events: readonly NemesisEvent[]): Disturbance[] {
  return events.map(({ target, deed, atMs, awayMs }) => ({
    reason: deed === 'pause' && REASONS[target] === 'worker killed' ? 'worker paused' : REASONS[target],
    fromMs: atMs,
    toMs: atMs + awayMs,
  }));
}

/**
 * The arrivals of what the endpoint had already taken with a complete 2xx, or was about to take at that moment.
 * An answer that the receiver cut short is no such 2xx: sending again is right then.
 */
export function findDuplicates(
  arrivals: readonly LoggedArrival[],
  disturbances: readonly Disturbance[],
  timeoutMs: number,
): Duplicate[] {
  const taken = new Map<string, LoggedArrival>();
  const duplicates: Duplicate[] = [];
  for (const arrival of [...arrivals].sort((a, b) => a.arrivedTick - b.arrivedTick)) {
    const key = `${arrival.endpoint} ${arrival.webhookId}`;
    const before = taken.get(key);
    if (before !== undefined) {
      duplicates.push({ arrival, reason: reasonFor(before, arrival, disturbances, timeoutMs) });
    } else if (arrival.accepted) taken.set(key, arrival);
  }
  return duplicates;
}

function reasonFor(
  taken: LoggedArrival,
  again: LoggedArrival,
  disturbances: readonly Disturbance[],
  timeoutMs: number,
): DuplicateReason {
  const answeredMs = taken.answeredMs ?? taken.arrivedMs;
  const near = disturbances.filter(
    ({ fromMs, toMs }) => fromMs - BEFORE_MS <= answeredMs + AFTER_MS && toMs + AFTER_MS >= taken.arrivedMs,
  );
  const found = LIKELIEST.find((reason) =>
    near.some((one) => one.reason === reason && one.fromMs <= again.arrivedMs),
  );
  if (found !== undefined) return found;
  return answeredMs - taken.arrivedMs > 0.8 * timeoutMs ? 'answer near the time-out' : 'unexplained';
}
