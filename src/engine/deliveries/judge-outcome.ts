import { MIN_RETRY_DELAY_MS, nextDelayMs, withinRetryLimits } from '../../platform/retry-schedule.ts';
import { isProxyFailure, type SendResult } from '../../platform/sender/http-sender.ts';
import type { DeliveryEnd } from '../queue/delivery-log.ts';
import { TROUBLE_STATUS } from '../queue/retry.ts';
import type { RunOfDelivery, RunRoom } from '../queue/settle.ts';

/** How many runs that show failing deliveries one endpoint may have open, and all together. */
export type RunRoomSize = { perEndpoint: number; overall: number };

/** One dead endpoint stays readable in the Temporal UI, and PostgreSQL retries what has no run at the same times. */
export const RUN_ROOM: RunRoomSize = { perEndpoint: 20, overall: 200 };

export type RunLimits = RunRoomSize & {
  mayStart: () => boolean;
  /** Whether one more run may be started now; uses up a start. `isFirst`: its tenant has none open. */
  takeStart: (isFirst: boolean) => boolean;
};

type Limits = Pick<RunLimits, 'overall' | 'takeStart'>;

export type AttemptMade = {
  eventType: string;
  /** This one included. */
  attempt: number;
  /** Earlier attempts that used up no retry. */
  probes: number;
  isProbe: boolean;
  hasRun: boolean;
  isCalm: boolean;
  retryScheduleMs: readonly number[];
  /** Its retry was brought forward, and would be due after this time; null: it was not. */
  scheduledInMs: number | null;
  result: SendResult;
};

/**
 * Decides how a delivery goes on after an attempt, at an endpoint as it is now; its room shrinks as a group of outcomes
 * uses it. A failure while the endpoint is probed, paused or disabled uses up no retry: it says something about the
 * endpoint, not about the delivery.
 */
export function judgeOutcome(made: AttemptMade, now: RunRoom, limits: Limits): SettledOutcome {
  const verdict = judgeAttempt(made.result);
  const { attempt } = made;
  if (verdict.kind === 'delivered') return { state: 'delivered', statusCode: verdict.statusCode, attempt };
  const { reason } = verdict;
  if (made.eventType === 'test') return { state: 'failed', reason, attempt };
  // The fault is ours, so it uses up no retry; whether a probe or not, it is made again soon.
  if (isProxyFailure(made.result)) {
    const delayMs = PROXY_WAIT_MS * (1 + Math.random());
    return { state: 'retrying', reason, attempt, delayMs, isExtra: true, run: ownRun(made) };
  }
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

/** Each attempt is recorded, and the next one waits in the queue if the proxy is still down. */
const PROXY_WAIT_MS = 2_000;

type Retry = Extract<AttemptVerdict, { kind: 'retry' }>;

function failedAttempt(
  made: AttemptMade,
  { reason, retryAfterMs }: Retry,
  room: RunRoom,
  limits: Limits,
): SettledOutcome {
  const { attempt, probes, retryScheduleMs: schedule, scheduledInMs } = made;
  const isExtra = scheduledInMs !== null;
  const delayMs = isExtra
    ? withinRetryLimits(Math.max(scheduledInMs, retryAfterMs ?? 0))
    : nextDelayMs({ schedule, attemptsMade: attempt - probes, retryAfterMs, random: Math.random });
  if (delayMs === null) return { state: 'failed', reason, attempt };
  const isShort = attempt === 1 && delayMs < SHORT_WAIT_MS && !made.isCalm;
  const run = isShort ? ownRun(made) : takeRun(made, room, limits);
  return { state: 'retrying', reason, attempt, delayMs, isExtra, run };
}

/** In busy traffic, a first failure that is retried before anybody could look gets no run for it. */
const SHORT_WAIT_MS = 30_000;

function ownRun({ hasRun }: AttemptMade): RunOfDelivery | null {
  return hasRun ? 'extra' : null;
}

/**
 * Takes a place among the runs, if there is one. A tenant may have as many as are still free for others, so there is
 * always room for a tenant that has none. A run that is there stays, room or not.
 */
function takeRun(made: AttemptMade, room: RunRoom, limits: Limits): RunOfDelivery | null {
  const free = limits.overall - room.openRunsOverall;
  if (made.hasRun || room.freeRuns <= 0 || room.openRunsOfTenant >= free) return ownRun(made);
  if (!limits.takeStart(room.openRunsOfTenant === 0)) return null;
  room.freeRuns -= 1;
  room.openRunsOfTenant += 1;
  room.openRunsOverall += 1;
  return 'room';
}

/** Whether a failure says that the server was in trouble, rather than that it refused this event. */
export function isTrouble(result: SendResult): boolean {
  if (isProxyFailure(result)) return false;
  if (result.outcome === 'error') return true;
  const { least, others } = TROUBLE_STATUS;
  return result.statusCode >= least || others.some((status) => status === result.statusCode);
}

/** Judges one response (or none). Every reason is public: tenants read it in their log. */
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

export type AttemptOutcome = SettledOutcome | UnattemptedOutcome;

/** An attempt was made and recorded. */
export type SettledOutcome =
  | { state: 'delivered'; statusCode: number; attempt: number }
  | { state: 'failed'; reason: string; attempt: number }
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
