import { insertAttempts } from '../database/attempts.ts';
import type { Database, Transaction } from '../database/database.ts';
import { recordProgress } from '../database/deliveries.ts';
import {
  findRetryRoom,
  type KeptDelivery,
  keepDeliveries,
  lockClaims,
  removeHeads,
} from '../database/delivery-settlement.ts';
import { disableEndpoint, endProbing, recordFailedProbe, startProbing } from '../database/endpoint-modes.ts';
import { attemptRecord, progressOf, type SentRequest } from './attempt-log.ts';
import type { SettledOutcome } from './attempt-outcome.ts';
import type { EndpointHealth } from './endpoint-health.ts';
import { type EndpointNow, judgeOutcome, probeDelayMs, type RetryLimits } from './judge-outcome.ts';
import type { SendableEndpoint } from './sendable-endpoint.ts';

export type SettlementTools = {
  database: Database;
  health: EndpointHealth;
  retryLimits: RetryLimits;
  /** Host and process, for the attempt log. */
  worker: string;
};

/** One attempt that was made under a claim. */
export type MadeAttempt = {
  deliveryId: string;
  deliveryDay: string;
  token: string;
  /** Attempts before this one; `probes` of them used up no retry. */
  attempts: number;
  probes: number;
  eventType: string;
  endpoint: SendableEndpoint;
  isProbe: boolean;
  sent: SentRequest;
  /** The workflow that carried it. */
  workflowId: string | null;
};

export type Settlement = {
  /** Per attempt, in order; null where the claim was no longer ours and nothing was recorded. */
  outcomes: (SettledOutcome | null)[];
  /** Deliveries that became claimable: behind these, or because their endpoint takes deliveries again. */
  promoted: number;
};

/**
 * Records attempts and moves their deliveries on, in one transaction: finished ones leave the queue and the next of
 * their lanes is promoted, the others are put where they wait. Rejects when the database fails; nothing is recorded then.
 */
export async function settleAttempts(
  tools: SettlementTools,
  attempts: readonly MadeAttempt[],
): Promise<Settlement> {
  const failing = [...new Set(attempts.filter(isFailure).map((attempt) => attempt.endpoint.id))];
  return await tools.database.transaction(async (trx) => {
    const [ours, rooms] = await Promise.all([
      lockClaims(trx, attempts),
      failing.length === 0 ? new Map() : findRetryRoom(trx, failing, tools.retryLimits),
    ]);
    const endpoints = new Map<string, EndpointNow>(
      [...rooms].map(([id, room]) => [id, { mode: room.mode, room }]),
    );
    const outcomes = attempts.map((attempt) =>
      ours.has(attempt.deliveryId) ? outcomeOf(tools, attempt, endpoints) : null,
    );
    const settled = attempts.flatMap((attempt, index) => {
      const outcome = outcomes[index] ?? null;
      return outcome === null ? [] : [{ attempt, outcome }];
    });
    const promoted = await write(trx, tools, settled);
    const reopened = await changeModes(trx, settled, endpoints);
    return { outcomes, promoted: promoted + reopened };
  });
}

function isFailure({ sent: { result } }: MadeAttempt): boolean {
  return result.outcome === 'error' || result.statusCode < 200 || result.statusCode > 299;
}

const NO_ROOM = { mode: 'disabled', version: 0, openRetries: 0, openRetriesOverall: 0 };

/** Judges in order, so that the failure with which an endpoint is taken for down already uses up no retry. */
function outcomeOf(
  tools: SettlementTools,
  attempt: MadeAttempt,
  endpoints: Map<string, EndpointNow>,
): SettledOutcome {
  const { endpoint, sent } = attempt;
  const now = endpoints.get(endpoint.id) ?? {
    mode: 'open',
    room: { endpointId: endpoint.id, ...NO_ROOM },
  };
  const counts = attempt.eventType !== 'test';
  const ok = !isFailure(attempt);
  const isDown = counts && tools.health.record(endpoint.id, { ok, durationMs: sent.result.timings.totalMs });
  if (isDown && now.mode === 'open') now.mode = 'down';
  const made = {
    ...{ eventType: attempt.eventType, probes: attempt.probes, isProbe: attempt.isProbe },
    attempt: attempt.attempts + 1,
    retryScheduleMs: endpoint.retryScheduleMs,
    result: sent.result,
  };
  return judgeOutcome(made, now, tools.retryLimits);
}

type Settled = { attempt: MadeAttempt; outcome: SettledOutcome };

/** Returns how many deliveries were promoted. The statements do not depend on each other's answers. */
async function write(trx: Transaction, tools: SettlementTools, settled: readonly Settled[]): Promise<number> {
  const finished = settled.filter(({ outcome }) => isFinal(outcome));
  const [promoted] = await Promise.all([
    removeHeads(
      trx,
      finished.map(({ attempt }) => attempt.deliveryId),
    ),
    keepDeliveries(trx, settled.flatMap(keptOf)),
    insertAttempts(
      trx,
      settled.map(({ attempt, outcome }) => ({
        ...attemptRecord(attempt, outcome),
        worker: tools.worker,
        workflowId: attempt.workflowId,
      })),
    ),
    recordProgress(
      trx,
      settled.map(({ attempt, outcome }) => progressOf(attempt, outcome)),
    ),
  ]);
  return promoted;
}

function isFinal({ state }: SettledOutcome): boolean {
  return state === 'delivered' || state === 'failed';
}

function keptOf({ attempt, outcome }: Settled): KeptDelivery[] {
  if (outcome.state === 'delivered' || outcome.state === 'failed') return [];
  const { deliveryId, probes } = attempt;
  const isHeld = outcome.state === 'held';
  const usedNoRetry = isHeld || (outcome.state === 'retrying' && outcome.isProbe);
  return [
    {
      deliveryId,
      state: isHeld ? 'due' : 'retrying',
      attempts: outcome.attempt,
      probes: usedNoRetry ? probes + 1 : probes,
      delayMs: isHeld ? null : outcome.delayMs,
      awaitsWorkflow: outcome.state === 'parked' || (outcome.state === 'retrying' && !isCarried(attempt)),
    },
  ];
}

/** Whether a workflow has this delivery already and will attempt it again itself. */
function isCarried({ workflowId }: MadeAttempt): boolean {
  return workflowId?.startsWith('delivery/') === true;
}

/** Returns 1 per endpoint that takes deliveries again. */
async function changeModes(
  trx: Transaction,
  settled: readonly Settled[],
  endpoints: ReadonlyMap<string, EndpointNow>,
): Promise<number> {
  let reopened = 0;
  const down = new Set([...endpoints].filter(([, now]) => now.mode === 'down').map(([id]) => id));
  for (const { attempt, outcome } of settled) {
    const { endpoint } = attempt;
    if (outcome.state === 'held' && isGone(attempt)) {
      const { version } = endpoint;
      await disableEndpoint(trx, endpoint.id, { version, reason: outcome.reason });
    } else if (outcome.state === 'held' && down.delete(endpoint.id)) {
      const probeAfterMs = probeDelayMs(endpoint.retryScheduleMs, 0, Math.random);
      await startProbing(trx, endpoint.id, {
        probeAfterMs,
        reason: `most attempts fail: ${outcome.reason}`,
      });
    } else if (outcome.state === 'retrying' && outcome.isProbe) {
      await recordFailedProbe(trx, endpoint.id, outcome.delayMs);
    } else if (outcome.state === 'delivered' && attempt.isProbe && (await endProbing(trx, endpoint.id))) {
      reopened += 1;
    }
  }
  return reopened;
}

function isGone({ sent: { result } }: MadeAttempt): boolean {
  return result.outcome === 'response' && result.statusCode === 410;
}
