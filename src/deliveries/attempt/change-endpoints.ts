import { countFailed } from '../../endpoints/endpoint-failures.ts';
import {
  disableEndpoint,
  type EndpointReport,
  endProbing,
  noteReports,
  startProbing,
} from '../../endpoints/endpoint-health.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { isProxyFailure } from '../../platform/sender/http-sender.ts';
import type { RunRoom } from '../../queue/settle.ts';
import { probeDelayMs } from '../breaker.ts';
import { isTrouble, type SettledOutcome } from '../judge-outcome.ts';
import { isGone, type MadeAttempt } from './made-attempt.ts';

export type Settled = { attempt: MadeAttempt; outcome: SettledOutcome };

/** Notes what attempts say about their endpoints; returns how many of these take deliveries again. */
export async function changeEndpoints(
  trx: Transaction,
  settled: readonly Settled[],
  endpoints: ReadonlyMap<string, RunRoom>,
): Promise<number> {
  const byEndpoint = Map.groupBy(settled, ({ attempt }) => attempt.endpoint.id);
  const failed = new Map([...byEndpoint].map(([id, ofOne]) => [id, ofOne.filter(isPermanent).length]));
  const changes = [...byEndpoint].flatMap(([id, ofOne]) => changeOf(id, ofOne, endpoints.get(id)) ?? []);
  if (settled.some(isPermanent)) await countFailed(trx, failed);
  if (changes.length > 0) await noteReports(trx, changes);
  let reopened = 0;
  for (const { changeMode } of changes) if ((await changeMode?.(trx)) === true) reopened += 1;
  return reopened;
}

/** The test event has no retries, so its failure says nothing. */
function isPermanent({ attempt, outcome }: Settled): boolean {
  return outcome.state === 'failed' && attempt.eventType !== 'test';
}

/** `changeMode`: true when the endpoint takes deliveries again. */
type EndpointChange = EndpointReport & { changeMode: ((trx: Transaction) => Promise<boolean>) | null };

/** What attempts of one endpoint change about it; null: nothing. */
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
  for (const { attempt, outcome } of settled) {
    const { version, retryScheduleMs } = attempt.endpoint;
    if (outcome.state === 'delivered' && attempt.isProbe) return (trx) => endProbing(trx, endpointId);
    if (outcome.state !== 'deferred') continue;
    const { reason } = outcome;
    if (isGone(attempt))
      return (trx) => disableEndpoint(trx, endpointId, { version, reason }).then(() => false);
    if (now?.mode !== 'down') continue;
    const probing = {
      probeAfterMs: probeDelayMs(retryScheduleMs, 0, Math.random),
      reason: `most attempts fail: ${reason}`,
    };
    return (trx) => startProbing(trx, endpointId, probing).then(() => false);
  }
  return null;
}
