import { type Arrival, bodyNumberOf, type RunPlan, type RunTimes, STATUSES } from '../run-plan.ts';

export type DeliveryCheck = {
  /** Number of the body and first arrival that the receiver accepted of each event. */
  first: { n: number; arrivedMs: number }[];
  /** How long after a refused attempt each accepted one came. */
  retriedAfterMs: number[];
  /** Acknowledged events that did not come. */
  missing: number;
  /** Webhooks that came again at the same endpoint though it had accepted them. */
  duplicates: number;
  /** Duplicates whose attempt number was above 1: retries of what had arrived. */
  retriedDuplicates: number;
  /** First arrivals behind a later one of their key. */
  orderViolations: number;
};

/** How many events have to arrive of the bodies that were acknowledged. */
export function expectedEvents(plan: RunPlan, { status }: Pick<RunTimes, 'status'>): number {
  const bodies = status.reduce((sum, one) => sum + (one === 200 ? 1 : 0), 0);
  return bodies * { message: 1, statuses: STATUSES.length, '200 statuses': 200 }[plan.body];
}

/** Compares what came with what was acknowledged. `arrivals` are in order of arrival; other runs' are left out. */
export function checkDeliveries(
  plan: RunPlan,
  times: Pick<RunTimes, 'status'>,
  arrivals: readonly Arrival[],
): DeliveryCheck {
  const seen = new Set<string>();
  const refusedMs = new Map<string, number>();
  const cameOf = new Map<number, Set<string>>();
  const lastOfKey = new Map<string, Position>();
  const check = {
    first: [] as DeliveryCheck['first'],
    retriedAfterMs: [] as number[],
    duplicates: 0,
    retriedDuplicates: 0,
    orderViolations: 0,
  };
  for (const arrival of arrivals) {
    const n = bodyNumberOf(plan.run, arrival.eventId);
    if (n === null) continue;
    const webhook = `${arrival.endpoint} ${arrival.webhookId}`;
    if (seen.has(webhook)) {
      check.duplicates += 1;
      if (arrival.attempt > 1) check.retriedDuplicates += 1;
      continue;
    }
    const refused = refusedMs.get(webhook);
    if (!arrival.accepted) {
      refusedMs.set(webhook, arrival.arrivedMs);
      continue;
    }
    if (refused !== undefined) check.retriedAfterMs.push(arrival.arrivedMs - refused);
    seen.add(webhook);
    check.first.push({ n, arrivedMs: arrival.arrivedMs });
    cameOf.set(n, (cameOf.get(n) ?? new Set()).add(arrival.status));
    const key = `${arrival.endpoint} ${arrival.eventId}`;
    const position = positionOf(arrival);
    const last = lastOfKey.get(key);
    if (last !== undefined && isBehind(position, last)) check.orderViolations += 1;
    lastOfKey.set(key, last === undefined ? position : later(last, position));
  }
  return { ...check, missing: countMissing(plan, times, cameOf) };
}

/** The product's own count, and the order in which upstream wrote the statuses: the first could be wrong itself. */
type Position = { sequence: number; rank: number };

function positionOf({ sequence, status }: Arrival): Position {
  return { sequence, rank: (STATUSES as readonly string[]).indexOf(status) };
}

function isBehind(position: Position, last: Position): boolean {
  return position.sequence < last.sequence || position.rank < last.rank;
}

function later(a: Position, b: Position): Position {
  return { sequence: Math.max(a.sequence, b.sequence), rank: Math.max(a.rank, b.rank) };
}

function countMissing(
  plan: RunPlan,
  times: Pick<RunTimes, 'status'>,
  cameOf: ReadonlyMap<number, ReadonlySet<string>>,
): number {
  let came = 0;
  for (const [n, statuses] of cameOf) if (times.status[n] === 200) came += statuses.size;
  return Math.max(0, expectedEvents(plan, times) - came);
}
