import { shownUrl } from '../../../platform/http/outbound-url.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { isTransientError } from '../../../platform/postgres/error-class.ts';
import { isProxyFailure, isTimeout } from '../../../platform/sender/http-sender.ts';
import type { ClaimedDelivery } from '../../queue/claim.ts';
import {
  type AttemptRecord,
  type ClaimInForce,
  type FollowerClaim,
  findClaims,
  findRunRoom,
  putOffClaim,
  type RecordGate,
  type RunRoom,
  type SettledDelivery,
  type SettledWith,
  settleDeliveries,
  settleWith,
} from '../../queue/settle.ts';
import { type EndpointHealth, isRepetition } from '../breaker.ts';
import { judgeOutcome, type RunLimits, type SettledOutcome } from '../judge-outcome.ts';
import { changeEndpoints, lockChanged, type Settled } from './change-endpoints.ts';
import { isFailure, isPlainSuccess, type MadeAttempt } from './made-attempt.ts';

export type SettlementTools = {
  database: Database;
  health: EndpointHealth;
  runLimits: RunLimits;
  gate: RecordGate;
  /** Something that someone must know failed; it is tried again. */
  onTrouble: (error: unknown) => void;
  /** Host and process, for the attempt log. */
  worker: string;
  onAttempt: AttemptObserver;
};

/** Called with every attempt once it is recorded. Null: its claim was no longer ours, and nothing was recorded. */
export type AttemptObserver = (attempt: MadeAttempt, outcome: SettledOutcome | null) => void;

export type Settlement<Attempt extends MadeAttempt> = {
  /** Per attempt, in order; null where the claim was no longer ours and nothing was recorded. */
  outcomes: (SettledOutcome | null)[];
  /** Not recorded because another transaction had locked their rows; their claims are still ours: record them again. */
  locked: readonly Attempt[];
  /** Deliveries that became claimable: behind these, or because their endpoint takes deliveries again. */
  promoted: number;
  /** Claimed for the caller, with what is needed to attempt them. */
  followers: ClaimedDelivery[];
};

/**
 * Records attempts and moves their deliveries on, all or none: finished ones leave the queue and the next of their
 * lanes is promoted, the others are put where they wait. Rejects when the database fails; nothing is recorded then.
 * Where all succeeded, followers are claimed by `claim`.
 */
export async function settleAttempts<Attempt extends MadeAttempt>(
  tools: SettlementTools,
  attempts: readonly Attempt[],
  claim: FollowerClaim | null = null,
): Promise<Settlement<Attempt>> {
  const settled = await settle(tools, attempts, claim);
  const settlement = { ...settled, locked: await lockedOf(tools.database, attempts, settled.outcomes) };
  for (const [index, attempt] of attempts.entries()) {
    if (!settlement.locked.includes(attempt)) tools.onAttempt(attempt, settlement.outcomes[index] ?? null);
  }
  return settlement;
}

/** Of the attempts that were not recorded, those whose claims are in force. When that is not known: all of them. */
async function lockedOf<Attempt extends MadeAttempt>(
  database: Database,
  attempts: readonly Attempt[],
  outcomes: Settlement<Attempt>['outcomes'],
): Promise<Attempt[]> {
  const missing = attempts.filter((_, index) => (outcomes[index] ?? null) === null);
  if (missing.length === 0) return [];
  const unrecorded = await findClaims(database, missing).catch(() => null);
  return missing.filter(({ deliveryId }) => unrecorded?.has(deliveryId) ?? true);
}

/** An attempt that the database refuses on its own is made again after this time. */
const REFUSED_WAIT_MS = 10 * 60_000;

/**
 * Records one attempt that the database refuses though it can record others. What the receiver sent is the only part
 * that comes from outside, so it is left out; if that is refused too, only the queue learns of the attempt.
 */
export async function settleRefused<Attempt extends MadeAttempt>(
  tools: SettlementTools,
  attempt: Attempt,
  cause: unknown,
): Promise<Settlement<Attempt>> {
  tools.onTrouble(cause);
  const { result } = attempt.sent;
  if (result.outcome === 'response') {
    const bareResult = { ...result, headers: {}, body: Buffer.from('(could not be stored)') };
    const bare = { ...attempt, sent: { ...attempt.sent, result: bareResult } };
    try {
      const settlement = await settleAttempts(tools, [bare]);
      return { ...settlement, locked: settlement.locked.map(() => attempt) };
    } catch (error) {
      if (isTransientError(error)) throw error;
    }
  }
  return await putOff(tools, attempt);
}

async function putOff<Attempt extends MadeAttempt>(
  tools: SettlementTools,
  attempt: Attempt,
): Promise<Settlement<Attempt>> {
  const { deliveryId, token } = attempt;
  const delayMs = REFUSED_WAIT_MS;
  const attempts = attempt.attempts + 1;
  const run = attempt.hasRun ? ('extra' as const) : null;
  const isOurs = await putOffClaim(tools.database, { deliveryId, token, attempts, delayMs, run });
  const reason = 'its attempt could not be recorded';
  const outcome = { state: 'retrying' as const, reason, attempt: attempts, delayMs, isExtra: false, run };
  const outcomes = [isOurs ? outcome : null];
  const locked = await lockedOf(tools.database, [attempt], outcomes);
  return { outcomes, locked, promoted: 0, followers: [] };
}

/** Where all succeeded nothing is to be decided: the statement that records them is its own transaction. */
async function settle(
  tools: SettlementTools,
  attempts: readonly MadeAttempt[],
  claim: FollowerClaim | null,
): Promise<Omit<Settlement<MadeAttempt>, 'locked'>> {
  if (attempts.every(isPlainSuccess)) {
    const judged = judge(tools, attempts, NOTHING_READ);
    const { settled: _, ...recorded } = await record(tools, attempts, { judged, claim });
    return recorded;
  }
  return await tools.database.transaction(async (trx) => {
    const [claims, endpoints] = await Promise.all([
      findClaims(trx, attempts),
      endpointsOf(trx, attempts.filter(isFailure), tools.runLimits),
    ]);
    const judged = judge(tools, attempts, { claims, endpoints });
    await lockChanged(trx, judged, endpoints);
    const { settled, ...recorded } = await record({ ...tools, database: trx }, attempts, {
      judged,
      claim: null,
    });
    const others = settled.flatMap(othersOf);
    if (others.length > 0) await settleWith(trx, others);
    const reopened = await changeEndpoints(trx, settled, endpoints);
    return { ...recorded, promoted: recorded.promoted + reopened };
  });
}

/** The state by which failures are judged. `claims`: those in force; null: all, as far as is known. */
type Read = { claims: ReadonlyMap<string, ClaimInForce> | null; endpoints: Map<string, RunRoom> };

const NOTHING_READ: Read = { claims: null, endpoints: new Map() };

/** Judges those of the attempts whose claims are in force. */
function judge(
  tools: SettlementTools,
  attempts: readonly MadeAttempt[],
  { claims, endpoints }: Read,
): Settled[] {
  return attempts.flatMap((attempt): Settled[] => {
    const known = claims?.get(attempt.deliveryId) ?? null;
    if (claims !== null && known === null) return [];
    const scheduledInMs = known?.scheduledInMs ?? null;
    const batch = known?.batch ?? [];
    return [{ attempt, outcome: outcomeOf(tools, attempt, { endpoints, scheduledInMs }), batch }];
  });
}

/** Of a batch all but the first, which was attempted and recorded. */
function othersOf({ attempt, batch, outcome }: Settled): SettledWith[] {
  const shared = { withId: attempt.deliveryId, attempt: outcome.attempt };
  return batch.slice(1).map((deliveryId) => ({ deliveryId, ...shared }));
}

/** Records what was judged, as far as the statement finds the claims in force: that is `settled`. */
async function record(
  tools: SettlementTools,
  attempts: readonly MadeAttempt[],
  { judged, claim }: { judged: readonly Settled[]; claim: FollowerClaim | null },
) {
  const rows = judged.map(settledDelivery);
  const { ours, ...others } = await settleDeliveries(tools.database, rows, { worker: tools.worker, claim });
  for (const { attempt } of judged) if (!isFailure(attempt)) countAttempt(tools, attempt, true);
  const settled = judged.filter(({ attempt }) => ours.has(attempt.deliveryId));
  const outcomeBy = new Map(settled.map(({ attempt, outcome }) => [attempt, outcome]));
  return { settled, outcomes: attempts.map((attempt) => outcomeBy.get(attempt) ?? null), ...others };
}

/** The endpoints of failures, by id; runs are counted only while one could be started. */
async function endpointsOf(
  trx: Transaction,
  failures: readonly MadeAttempt[],
  limits: RunLimits,
): Promise<Map<string, RunRoom>> {
  const ids = [...new Set(failures.map(({ endpoint }) => endpoint.id))];
  const isCounted =
    failures.some((failure) => failure.recording.hasStart) ||
    (failures.some(({ hasRun }) => !hasRun) && limits.mayStart());
  return await findRunRoom(trx, ids, isCounted ? limits : null);
}

const NO_ROOM = {
  mode: 'open',
  probeFailures: 0,
  isInTrouble: false,
  freeRuns: 0,
  openRunsOfTenant: 0,
  openRunsOverall: 0,
};

/** Judges in order, so that the failure with which an endpoint is taken for down already uses up no retry. */
function outcomeOf(
  tools: SettlementTools,
  attempt: MadeAttempt,
  { endpoints, scheduledInMs }: { endpoints: Map<string, RunRoom>; scheduledInMs: number | null },
): SettledOutcome {
  const { endpoint, sent } = attempt;
  const now = endpoints.get(endpoint.id) ?? { endpointId: endpoint.id, ...NO_ROOM };
  if (isFailure(attempt) && countAttempt(tools, attempt, false) && now.mode === 'open') now.mode = 'down';
  const made = {
    eventType: attempt.eventType,
    probes: attempt.probes,
    isProbe: attempt.isProbe,
    attempt: attempt.attempts + 1,
    hasRun: attempt.hasRun,
    isCalm: attempt.isCalm,
    retryScheduleMs: endpoint.retryScheduleMs,
    scheduledInMs,
    result: sent.result,
  };
  return judgeOutcome(made, now, isFailure(attempt) ? oneStart(tools.runLimits, attempt) : tools.runLimits);
}

/** An attempt uses up one start of a run, however often its recording is tried. */
function oneStart({ overall, takeStart }: RunLimits, { recording }: MadeAttempt) {
  return {
    overall,
    takeStart: (isFirst: boolean) => {
      recording.hasStart ||= takeStart(isFirst);
      return recording.hasStart;
    },
  };
}

/**
 * True when the endpoint has to be taken for down. An attempt counts once, however often its recording is tried: a
 * database that stumbles must neither stop an endpoint nor lose the verdict. The test event says nothing about others.
 */
function countAttempt({ health }: SettlementTools, attempt: MadeAttempt, ok: boolean): boolean {
  const { deliveryId, eventType, endpoint, sent, attempts, probes, isProbe, recording } = attempt;
  if (eventType === 'test' || isProxyFailure(sent.result)) return false;
  recording.isDown ??= health.record(endpoint.id, {
    deliveryId,
    ok,
    timedOut: isTimeout(sent.result),
    isRepetition: isProbe || isRepetition(endpoint.retryScheduleMs, attempts - probes),
    durationMs: sent.result.timings.totalMs,
  });
  return recording.isDown;
}

function settledDelivery({ attempt, outcome }: Settled): SettledDelivery {
  const { deliveryId, deliveryDay, token, workflowId, probes } = attempt;
  const isFinal = outcome.state === 'delivered' || outcome.state === 'failed';
  const isDeferred = outcome.state === 'deferred';
  const usedNoRetry = isDeferred || (outcome.state === 'retrying' && outcome.isExtra);
  return {
    deliveryId,
    deliveryDay,
    token,
    workflowId,
    nextState: isFinal ? null : isDeferred ? 'due' : 'retrying',
    attempt: outcome.attempt,
    probes: usedNoRetry ? probes + 1 : probes,
    delayMs: outcome.state === 'retrying' ? outcome.delayMs : null,
    run: 'run' in outcome ? outcome.run : null,
    logState: isFinal ? outcome.state : 'pending',
    error: outcome.state === 'delivered' ? null : outcome.reason,
    ...attemptRecord(attempt),
  };
}

function attemptRecord({ endpoint, sent }: MadeAttempt): AttemptRecord {
  const { startedAt, result } = sent;
  const response = result.outcome === 'response' ? result : null;
  const error = result.outcome === 'error' ? result : null;
  return {
    wabaId: endpoint.wabaId,
    endpointId: endpoint.id,
    startedAt,
    ...result.timings,
    statusCode: response?.statusCode ?? null,
    errorClass: error?.errorClass ?? null,
    errorMessage: error?.message ?? null,
    url: shownUrl(endpoint.url),
    remoteAddress: result.remoteAddress,
    // They may hold credentials: their values are not logged.
    customHeaders: Object.keys(endpoint.customHeaders).join(',') || null,
    responseHeadersJson: response === null ? null : storableJson(response.headers),
    responseBody: response?.body ?? null,
  };
}

/** A receiver may send U+0000, which jsonb refuses; it must not be able to make its own attempt unrecordable. */
function storableJson(value: Record<string, string>): string {
  return JSON.stringify(value).replaceAll('\\u0000', '\\ufffd');
}
