import type { EndpointCounts } from '../endpoints/endpoint-health.ts';
import type { DeliveryEnd } from './delivery-log.ts';
import type { RunOfDelivery, RunRoom } from './queue/settle.ts';
import type { SendResult } from './sender/http-sender.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Runs that show failing deliveries: how many all together may have open, and one endpoint that says nothing else. */
export type RunLimits = {
  perEndpoint: number;
  overall: number;
  /** Whether one more run may be started now; uses up a start. `isFirst`: its tenant has none open. */
  takeStart: (isFirst: boolean) => boolean;
};

/** How soon a receiver that was down is noticed to be back, and how little it is bothered meanwhile. */
const LONGEST_PROBE_WAIT_MS = 5 * MINUTE_MS;

export type AttemptMade = {
  eventType: string;
  /** This one included. */
  attempt: number;
  /** Earlier attempts that used up no retry. */
  probes: number;
  isProbe: boolean;
  /** A run shows it. */
  hasRun: boolean;
  /** Traffic is calm: each delivery has a run. */
  isCalm: boolean;
  retryScheduleMs: readonly number[];
  /** Its retry was brought forward, and would be due after this time; null: it was not. */
  scheduledInMs: number | null;
  result: SendResult;
};

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

/**
 * What an attempt means for its delivery, at an endpoint as it is now; its room shrinks as a group of outcomes uses it. A failure while the endpoint is probed, paused or disabled uses up no
 * retry: it says something about the endpoint, not about the delivery.
 */
export function judgeOutcome(made: AttemptMade, now: RunRoom, limits: RunLimits): SettledOutcome {
  const verdict = judgeAttempt(made.result);
  const { attempt } = made;
  if (verdict.kind === 'delivered') return { state: 'delivered', statusCode: verdict.statusCode, attempt };
  const { reason } = verdict;
  if (made.eventType === 'test') return { state: 'failed', reason, attempt };
  const isProbe = made.isProbe && now.mode === 'probing';
  const retryAfterMs = verdict.kind === 'retry' ? verdict.retryAfterMs : null;
  if (isProbe && retryAfterMs !== null) {
    const delayMs = Math.max(MIN_RETRY_DELAY_MS, retryAfterMs);
    return { state: 'retrying', reason, attempt, delayMs, isExtra: true, run: takeRun(made, now, limits) };
  }
  // A failed probe goes back to the others, so that the next probe is another: this one may be what is wrong.
  if (verdict.kind === 'gone' || now.mode !== 'open')
    return { state: 'deferred', reason, attempt, run: takeRun(made, now, limits) };
  return failedAttempt(made, verdict, now, limits);
}

type Retry = Extract<AttemptVerdict, { kind: 'retry' }>;

function failedAttempt(
  made: AttemptMade,
  { reason, retryAfterMs }: Retry,
  room: RunRoom,
  limits: RunLimits,
): SettledOutcome {
  const { attempt, probes, retryScheduleMs: schedule, scheduledInMs } = made;
  const isExtra = scheduledInMs !== null;
  const delayMs = isExtra
    ? withinLimits(Math.max(scheduledInMs, retryAfterMs ?? 0))
    : nextDelayMs({ schedule, attemptsMade: attempt - probes, retryAfterMs, random: Math.random });
  if (delayMs === null) return { state: 'failed', reason, attempt };
  const isShort = attempt === 1 && delayMs < SHORT_WAIT_MS && !made.isCalm;
  const run = isShort ? ownRun(made) : takeRun(made, room, limits);
  return { state: 'retrying', reason, attempt, delayMs, isExtra, run };
}

/** In busy traffic, a first failure that is retried before anybody could look gets no run for it. */
const SHORT_WAIT_MS = 30 * SECOND_MS;

function ownRun({ hasRun }: AttemptMade): RunOfDelivery | null {
  return hasRun ? 'extra' : null;
}

/**
 * Takes a place among the runs, if there is one. A tenant may have as many as are still free for others, so there is
 * always room for a tenant that has none. A run that is there stays, room or not.
 */
function takeRun(made: AttemptMade, room: RunRoom, limits: RunLimits): RunOfDelivery | null {
  const free = limits.overall - room.openRunsOverall;
  if (made.hasRun || room.openRuns >= room.mostRuns || room.openRunsOfTenant >= free) return ownRun(made);
  if (!limits.takeStart(room.openRunsOfTenant === 0)) return null;
  room.openRuns += 1;
  room.openRunsOfTenant += 1;
  room.openRunsOverall += 1;
  return 'room';
}

/** The statuses with which a server says that it could not serve, whatever the event was. */
export const TROUBLE_STATUS = { least: 500, others: [408, 429] } as const;

/** Whether a failure says that the server was in trouble, rather than that it refused this event. */
export function isTrouble(result: SendResult): boolean {
  if (result.outcome === 'error') return true;
  const { least, others } = TROUBLE_STATUS;
  return result.statusCode >= least || others.some((status) => status === result.statusCode);
}

/** What one response (or none) means for the delivery. Every reason is public: tenants read it in their log. */
export type AttemptVerdict =
  | { kind: 'delivered'; statusCode: number }
  | { kind: 'retry'; reason: string; retryAfterMs: number | null }
  /** 410: the receiver says that it is gone for good. */
  | { kind: 'gone'; reason: string };

/** Any 2xx is success and 410 ends the endpoint; everything else may be a passing fault, also 401 and 404. */
export function judgeAttempt(result: SendResult): AttemptVerdict {
  if (result.outcome === 'error') {
    return {
      kind: 'retry',
      reason: `${result.errorClass}: ${result.message.replace(/\.$/, '')}`,
      retryAfterMs: null,
    };
  }
  const { statusCode, retryAfterMs } = result;
  if (statusCode >= 200 && statusCode <= 299) return { kind: 'delivered', statusCode };
  if (statusCode === 410) return { kind: 'gone', reason: 'the endpoint returned 410 Gone' };
  const redirect = statusCode >= 300 && statusCode <= 399 ? ' (redirects are not followed)' : '';
  return { kind: 'retry', reason: `the endpoint returned ${statusCode}${redirect}`, retryAfterMs };
}

/** Shortest and longest wait between two attempts of one delivery, in ms. */
export const MIN_RETRY_DELAY_MS = SECOND_MS;
export const MAX_RETRY_DELAY_MS = 24 * HOUR_MS;

const JITTER = 0.2;

/**
 * The waits before attempts 2 to 11, in ms; attempt 1 is made at once. Dense at first because a chat is live, then
 * up to about 69 hours so that a weekend without an operator is survived.
 */
export const DEFAULT_RETRY_SCHEDULE_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  6 * HOUR_MS,
  12 * HOUR_MS,
  24 * HOUR_MS,
  24 * HOUR_MS,
];

type NextDelayInput = {
  /** Waits in ms: entry n-1 follows attempt n. */
  schedule: readonly number[];
  /** Attempts already made, this one included. */
  attemptsMade: number;
  /** What the receiver asked for, null when it asked for nothing. */
  retryAfterMs: number | null;
  /** Uniform in [0, 1). */
  random: () => number;
};

/**
 * Ms to wait before the next attempt, or null when the schedule is exhausted. The scheduled wait is spread by ±20 %
 * so that a receiver that comes back is not met by everything at once; a longer Retry-After wins, a shorter one does
 * not. The result lies in [1 s, 24 h], except that the first attempt of all is due at once (0).
 */
export function nextDelayMs({ schedule, attemptsMade, retryAfterMs, random }: NextDelayInput): number | null {
  if (attemptsMade < 1) return 0;
  const scheduledMs = schedule[attemptsMade - 1];
  if (scheduledMs === undefined) return null;
  const spreadMs = scheduledMs * (1 - JITTER + 2 * JITTER * random());
  return withinLimits(Math.max(spreadMs, retryAfterMs ?? 0));
}

function withinLimits(delayMs: number): number {
  return Math.round(Math.min(Math.max(delayMs, MIN_RETRY_DELAY_MS), MAX_RETRY_DELAY_MS));
}

/** What is left to do for a delivery after a try to attempt it. */
export type AttemptOutcome = SettledOutcome | UnattemptedOutcome;

/** An attempt was made and recorded. */
export type SettledOutcome =
  | { state: 'delivered'; statusCode: number; attempt: number }
  | { state: 'failed'; reason: string; attempt: number }
  /** To be attempted again after `delayMs`. */
  | {
      state: 'retrying';
      reason: string;
      attempt: number;
      delayMs: number;
      /** It used up no retry. */
      isExtra: boolean;
      run: RunOfDelivery | null;
    }
  /** Kept in the queue, without having used up a retry, until its endpoint takes deliveries again. */
  | { state: 'deferred'; reason: string; attempt: number; run: RunOfDelivery | null };

type UnattemptedOutcome =
  /** Nothing can be attempted before `delayMs`, when to look again. */
  | { state: 'waiting'; reason: string; delayMs: number }
  /** It has left the queue; null when the log no longer says how. */
  | { state: 'settled'; end: DeliveryEnd | null };

/** Share and least number of failures, within some minutes, at which an endpoint is taken for down. */
export const BREAKER = { share: 0.7, leastFailures: 10, minutes: 5 };

/** An endpoint that hangs holds slots and connections for a time-out each, so this many in a row are enough. */
const TIMEOUTS_IN_A_ROW = 5;

type Minute = { minute: number; successes: number; failures: number };

type CountedAttempt = {
  deliveryId: string;
  ok: boolean;
  timedOut?: boolean;
  /** Whether its failure was counted lately, see isRepetition: the breaker counts deliveries, not their attempts. */
  isRepetition: boolean;
  durationMs: number;
};

/**
 * Whether a failure of a delivery that has used up `retriesUsed` retries tells the breaker nothing new: by the schedule,
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
      current = { minute, successes: 0, failures: 0 };
      window.push(current);
    }
    if (ok) current.successes += 1;
    else if (!isRepetition) current.failures += 1;
    windows.set(endpointId, window);
    return window;
  };

  /** Of how many deliveries. */
  const timeoutsInARow = (endpointId: string, { deliveryId, timedOut }: CountedAttempt): number => {
    if (timedOut) timeouts.set(endpointId, (timeouts.get(endpointId) ?? new Set()).add(deliveryId));
    else timeouts.delete(endpointId);
    return timeouts.get(endpointId)?.size ?? 0;
  };

  return {
    /** Counts an attempt; true when with it the endpoint has to be taken for down. Counting then starts anew. */
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
    /** What was counted since the last call. */
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
  const sumOf = (outcome: 'failures' | 'successes') =>
    window.reduce((sum, minute) => sum + minute[outcome], 0);
  const [failures, successes] = [sumOf('failures'), sumOf('successes')];
  return failures >= BREAKER.leastFailures && failures >= BREAKER.share * (failures + successes);
}
