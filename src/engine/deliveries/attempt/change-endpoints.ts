import type { Transaction } from '../../../platform/postgres/database.ts';
import { isProxyFailure } from '../../../platform/sender/http-sender.ts';
import { countFailed } from '../../endpoint/endpoint-failures.ts';
import {
  disableEndpoint,
  type EndpointReport,
  endProbing,
  lockHealth,
  noteReports,
  startProbing,
} from '../../endpoint/endpoint-health.ts';
import type { RunRoom } from '../../queue/settle.ts';
import { probeDelayMs } from '../breaker.ts';
import { isTrouble, type SettledOutcome } from '../judge-outcome.ts';
import { isGone, type MadeAttempt } from './made-attempt.ts';

/** `batch`: the deliveries that went out together, the attempted one first; none: it went out alone. */
export type Settled = { attempt: MadeAttempt; outcome: SettledOutcome; batch: readonly string[] };

/** Locks the health of the endpoints that these attempts will change, before anything else is locked, so that no two transactions wait for each other. */
export async function lockChanged(
  trx: Transaction,
  judged: readonly Settled[],
  endpoints: ReadonlyMap<string, RunRoom>,
): Promise<void> {
  const changed = changesOf(judged, endpoints).map(({ endpointId }) => endpointId);
  if (changed.length > 0) await lockHealth(trx, changed);
}

/** Notes what attempts say about their endpoints; returns how many of these take deliveries again. */
export async function changeEndpoints(
  trx: Transaction,
  settled: readonly Settled[],
  endpoints: ReadonlyMap<string, RunRoom>,
): Promise<number> {
  const failed = byEndpoint(settled.filter(isPermanent)).map(
    ([id, ofOne]) => [id, ofOne.reduce((sum, { batch }) => sum + Math.max(1, batch.length), 0)] as const,
  );
  const changes = changesOf(settled, endpoints);
  if (failed.length > 0) await countFailed(trx, new Map(failed));
  if (changes.length > 0) await noteReports(trx, changes);
  let reopened = 0;
  for (const { changeMode } of changes) if ((await changeMode?.(trx)) === true) reopened += 1;
  return reopened;
}

function byEndpoint(settled: readonly Settled[]): [string, Settled[]][] {
  return [...Map.groupBy(settled, ({ attempt }) => attempt.endpoint.id)];
}

/** The test event has no retries, so its failure says nothing. */
function isPermanent({ attempt, outcome }: Settled): boolean {
  return outcome.state === 'failed' && attempt.eventType !== 'test';
}

/** `changeMode`: true when the endpoint takes deliveries again. */
type EndpointChange = EndpointReport & { changeMode: ((trx: Transaction) => Promise<boolean>) | null };

function changesOf(settled: readonly Settled[], endpoints: ReadonlyMap<string, RunRoom>): EndpointChange[] {
  return byEndpoint(settled).flatMap(([id, ofOne]) => changeOf(id, ofOne, endpoints.get(id)) ?? []);
}

/** The changes that attempts of one endpoint make to it; null: none. */
function changeOf(
  endpointId: string,
  settled: readonly Settled[],
  now: RunRoom | undefined,
): EndpointChange | null {
  const isTroubled =
    now?.isInTrouble === false &&
    settled.some(({ attempt, outcome }) => outcome.state !== 'delivered' && isTrouble(attempt.sent.result));
  const probe = settled.find(isFailedProbe)?.attempt;
  const changeMode = modeChangeOf(endpointId, settled, now);
  if (!isTroubled && probe === undefined && changeMode === null) return null;
  const probeAfterMs =
    probe === undefined
      ? null
      : probeDelayMs(probe.endpoint.retryScheduleMs, now?.probeFailures ?? 0, Math.random);
  const failedProbes = probe === undefined || isProxyFailure(probe.sent.result) ? 0 : 1;
  return { endpointId, isTroubled, probeAfterMs, failedProbes, changeMode };
}

function isFailedProbe({ attempt, outcome: { state } }: Settled): boolean {
  return attempt.isProbe && !isGone(attempt) && (state === 'deferred' || state === 'retrying');
}

function modeChangeOf(
  endpointId: string,
  settled: readonly Settled[],
  now: RunRoom | undefined,
): EndpointChange['changeMode'] {
  // Whatever else it answered beside that.
  for (const { attempt, outcome } of settled) {
    if (outcome.state !== 'deferred' || !isGone(attempt)) continue;
    const gone = { version: attempt.endpoint.version, reason: outcome.reason };
    return (trx) => disableEndpoint(trx, endpointId, gone).then(() => false);
  }
  for (const { attempt, outcome } of settled) {
    const { retryScheduleMs } = attempt.endpoint;
    if (outcome.state === 'delivered' && attempt.isProbe) return (trx) => endProbing(trx, endpointId);
    if (outcome.state !== 'deferred' || now?.mode !== 'down') continue;
    const { reason } = outcome;
    const probing = {
      probeAfterMs: probeDelayMs(retryScheduleMs, 0, Math.random),
      reason: `most attempts fail: ${reason}`,
    };
    return (trx) => startProbing(trx, endpointId, probing).then(() => false);
  }
  return null;
}
