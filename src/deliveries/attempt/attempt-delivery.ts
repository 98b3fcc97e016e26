import { randomUUID } from 'node:crypto';
import { takeProbe } from '../../endpoints/endpoint-health.ts';
import { type EndpointSettings, loadEndpointSettings } from '../../endpoints/endpoint-settings.ts';
import type { SecretBox } from '../../platform/crypto/secret-box.ts';
import { isTransientError } from '../../platform/postgres/error-class.ts';
import { findDeliveredEvent } from '../delivery-log.ts';
import type { AttemptOutcome, UnattemptedOutcome } from '../judge-outcome.ts';
import type { EndpointLimiter } from '../loop/attempt-limits.ts';
import { releaseClaims } from '../queue/claim.ts';
import { leaseDelivery } from '../queue/lease.ts';
import { dropOrphans } from '../queue/remove.ts';
import type { HttpSender } from '../sender/http-sender.ts';
import { type DeliveryDefaults, openEndpoint, sendDelivery } from './send-delivery.ts';
import {
  type MadeAttempt,
  type Settlement,
  type SettlementTools,
  settleAttempts,
  settleRefused,
} from './settle-attempts.ts';

export type AttemptTools = SettlementTools & {
  sender: HttpSender;
  limiter: EndpointLimiter;
  secretBox: SecretBox;
  defaults: DeliveryDefaults;
};

export type DeliveryRef = { deliveryId: string; deliveryDay: string; workflowId: string | null };

/** Wait before a delivery is looked at again whose lease was released or lost. */
const LOOK_AGAIN_MS = 1_000;

/** Wait while nothing can be recorded, and so nothing is sent. */
const UNRECORDABLE_WAIT_MS = 5_000;

/** How long a claim protects an attempt of up to `timeoutMs`: as much again, for recording it. */
export function leaseMsFor(timeoutMs: number): number {
  return timeoutMs * 2;
}

/** An attempt that has less than this share of its time left when it could send releases its lease instead. */
const LEAST_SHARE_TO_SEND = 0.25;

/** Whether an attempt may still be sent: `deadlineMs` is on the clock of leases. */
export function isInTime(deadlineMs: number, timeoutMs: number): boolean {
  return deadlineMs - leaseClockMs() >= timeoutMs * LEAST_SHARE_TO_SEND;
}

/**
 * Attempts one delivery for the workflow that has it: takes its lease, signs and POSTs the stored bytes, then records
 * what came of it. Rejects only when the database fails; the lease then ends by itself. The deadline counts from
 * before the claim, so no POST outlives the lease.
 */
export async function attemptDelivery(tools: AttemptTools, ref: DeliveryRef): Promise<AttemptOutcome> {
  const { database, defaults, gate } = tools;
  if (!gate.isOpen()) {
    const reason = 'attempts cannot be recorded at present';
    return { state: 'waiting', reason, delayMs: UNRECORDABLE_WAIT_MS };
  }
  const startMs = leaseClockMs();
  const token = randomUUID();
  const lease = await leaseDelivery(database, { ...ref, token, leaseMs: leaseMsFor(defaults.timeoutMs) });
  if (lease.kind === 'finished') return { state: 'finished' };
  if (lease.kind === 'wait') {
    return { state: 'waiting', reason: lease.lastError ?? 'not due yet', delayMs: lease.waitMs };
  }
  const claim = { ...lease.delivery, token };
  const [[settings], event] = await Promise.all([
    loadEndpointSettings(database, [claim.endpointId]),
    findDeliveredEvent(database, claim),
  ]);
  if (event === null || settings === undefined || settings.wabaId !== event.wabaId) {
    await dropOrphans(database, [claim]);
    return { state: 'finished' };
  }
  const endpoint = openEndpoint(settings, tools);
  const deadlineMs = startMs + endpoint.timeoutMs;
  const leave = await mayAttempt(tools, settings, event.eventType, isInTime(deadlineMs, endpoint.timeoutMs));
  if (leave.kind === 'no') {
    await releaseClaims(database, token, [claim.deliveryId]);
    return leave.outcome;
  }
  const timeLeftMs = deadlineMs - leaseClockMs();
  const sent = await sendDelivery(tools.sender, endpoint, { ...claim, ...event }, timeLeftMs);
  tools.limiter.learn(endpoint.id, sent.result);
  tools.limiter.spend(endpoint.id, 1);
  const { eventType, eventId } = event;
  const { isProbe } = leave;
  const made = { ...claim, eventType, eventId, endpoint, isProbe, sent, workflowId: ref.workflowId };
  const { outcomes } = await settleOne(tools, made);
  return sayAside(outcomes[0] ?? LOST, claim.steppedAsideAt);
}

const LOST = {
  state: 'waiting',
  reason: 'the lease ended before the attempt did',
  delayMs: LOOK_AGAIN_MS,
} as const;

/** Has the workflow of a delivery that stepped aside say so wherever it says why it waits. */
function sayAside(outcome: AttemptOutcome, since: Date | null): AttemptOutcome {
  if (since === null || outcome.state !== 'retrying') return outcome;
  const reason = `${outcome.reason}; stepped aside at ${since.toISOString()}: later events of its key go on`;
  return { ...outcome, reason };
}

/** An attempt that cannot be recorded now is made again once its lease has ended and something can be recorded. */
async function settleOne(tools: AttemptTools, made: MadeAttempt): Promise<Settlement> {
  try {
    return await settleAttempts(tools, [made]);
  } catch (error) {
    if (!(await tools.gate.check()) || isTransientError(error)) throw error;
    return await settleRefused(tools, made, error);
  }
}

type Leave = { kind: 'yes'; isProbe: boolean } | { kind: 'no'; outcome: UnattemptedOutcome };

/** Whether a claimed delivery may be sent now. The test event may always, so that a tenant can see what is wrong. */
async function mayAttempt(
  { database, defaults }: AttemptTools,
  { id, mode }: EndpointSettings,
  eventType: string,
  inTime: boolean,
): Promise<Leave> {
  if (!inTime) {
    const reason = 'the database was too slow to attempt in time';
    return { kind: 'no', outcome: { state: 'waiting', reason, delayMs: LOOK_AGAIN_MS } };
  }
  if (mode === 'open' || eventType === 'test') return { kind: 'yes', isProbe: false };
  if (mode === 'probing') {
    const leaseMs = leaseMsFor(defaults.timeoutMs);
    if (await database.transaction((trx) => takeProbe(trx, id, leaseMs)))
      return { kind: 'yes', isProbe: true };
  }
  return { kind: 'no', outcome: { state: 'off', reason: `the endpoint is ${mode}` } };
}

/** The two clocks are read one after the other; a gap below this is no pause. */
const LEAST_PAUSE_MS = 500;

let pausedMs = 0;
let lastMonotonicMs = performance.now();
let lastWallMs = Date.now();

/**
 * Ms on a clock that only goes forward, and goes on while the machine is paused: the monotonic clock stops then, but
 * leases end on the database's. A wall clock that is set forward looks the same; attempts not yet sent then release
 * their leases, which loses nothing.
 */
export function leaseClockMs(): number {
  const monotonicMs = performance.now();
  const wallMs = Date.now();
  const gapMs = wallMs - lastWallMs - (monotonicMs - lastMonotonicMs);
  if (gapMs > LEAST_PAUSE_MS) pausedMs += gapMs;
  lastMonotonicMs = monotonicMs;
  lastWallMs = wallMs;
  return monotonicMs + pausedMs;
}
