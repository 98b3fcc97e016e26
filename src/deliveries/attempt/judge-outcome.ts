import { type AttemptVerdict, judgeAttempt } from '../attempt-verdict.ts';
import type { RetryRoom } from '../queue/settle.ts';
import { nextDelayMs } from '../retry-schedule.ts';
import type { SendResult } from '../sender/send-result.ts';
import type { SettledOutcome } from './attempt-outcome.ts';

/** Retry workflows that one endpoint and all together may have open; what is beyond is retried by a delivery loop. */
export type RetryLimits = {
  perEndpoint: number;
  overall: number;
  /** Whether one more workflow may be started now; uses up a start. */
  takeStart: () => boolean;
};

/** How soon a receiver that was down is noticed to be back, and how little it is bothered meanwhile. */
const LONGEST_PROBE_WAIT_MS = 5 * 60_000;

export type AttemptMade = {
  eventType: string;
  /** This one included. */
  attempt: number;
  /** Earlier attempts that used up no retry. */
  probes: number;
  isProbe: boolean;
  /** A workflow carries it and would attempt it again. */
  hasWorkflow: boolean;
  retryScheduleMs: readonly number[];
  result: SendResult;
};

/** The endpoint when the outcome is recorded; `room` shrinks as a group of outcomes uses it. */
export type EndpointNow = { mode: string; room: RetryRoom };

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
 * What an attempt means for its delivery. A failure while the endpoint is probed, paused or disabled uses up no
 * retry: it says something about the endpoint, not about the delivery.
 */
export function judgeOutcome(made: AttemptMade, now: EndpointNow, limits: RetryLimits): SettledOutcome {
  const verdict = judgeAttempt(made.result);
  const { attempt } = made;
  if (verdict.kind === 'delivered') return { state: 'delivered', statusCode: verdict.statusCode, attempt };
  const { reason } = verdict;
  if (made.eventType === 'test') return { state: 'failed', reason, attempt };
  if (verdict.kind === 'gone') return { state: 'deferred', reason, attempt };
  if (made.isProbe && now.mode === 'probing') return failedProbe(made, verdict, now.room, limits);
  if (now.mode !== 'open') return { state: 'deferred', reason, attempt };
  return failedAttempt(made, verdict, now.room, limits);
}

type Retry = Extract<AttemptVerdict, { kind: 'retry' }>;

function failedProbe(
  made: AttemptMade,
  { reason, retryAfterMs }: Retry,
  room: RetryRoom,
  limits: RetryLimits,
): SettledOutcome {
  const waitMs = probeDelayMs(made.retryScheduleMs, made.probes, Math.random);
  const delayMs = Math.max(waitMs, retryAfterMs ?? 0);
  const byWorkflow = takeRoom(made, room, limits);
  return { state: 'retrying', reason, attempt: made.attempt, delayMs, isProbe: true, byWorkflow };
}

function failedAttempt(
  made: AttemptMade,
  { reason, retryAfterMs }: Retry,
  room: RetryRoom,
  limits: RetryLimits,
): SettledOutcome {
  const { attempt, probes, retryScheduleMs: schedule } = made;
  const delayMs = nextDelayMs({
    schedule,
    attemptsMade: attempt - probes,
    retryAfterMs,
    random: Math.random,
  });
  if (delayMs === null) return { state: 'failed', reason, attempt };
  const byWorkflow = takeRoom(made, room, limits);
  return { state: 'retrying', reason, attempt, delayMs, isProbe: false, byWorkflow };
}

/**
 * Takes a place among the retry workflows, if there is one. A tenant may have as many as are still free for others, so
 * there is always room for a tenant that has none.
 */
function takeRoom(made: AttemptMade, room: RetryRoom, limits: RetryLimits): boolean {
  const free = limits.overall - room.openRetriesOverall;
  if (room.openRetries >= limits.perEndpoint || room.openRetriesOfTenant >= free) return false;
  if (!made.hasWorkflow && !limits.takeStart()) return false;
  room.openRetries += 1;
  room.openRetriesOfTenant += 1;
  room.openRetriesOverall += 1;
  return true;
}
