import { type AttemptRecord, insertAttempt } from '../database/attempts.ts';
import type { Transaction } from '../database/database.ts';
import { recordProgress } from '../database/deliveries.ts';
import type { ClaimedDelivery } from '../database/delivery-claims.ts';
import type { SettledOutcome } from './attempt-outcome.ts';
import type { SendResult } from './send-result.ts';

/** One request as it was sent, and what came of it. */
export type SentRequest = {
  wabaId: string;
  url: string;
  startedAt: Date;
  headers: Record<string, string>;
  result: SendResult;
};

/** Signatures are left out: whoever reads the log must not be able to replay a request with them. */
const UNLOGGED_HEADERS = new Set(['x-service-signature', 'webhook-signature']);

/** Writes an attempt and the delivery's progress to the log. */
export async function logAttempt(
  trx: Transaction,
  claim: ClaimedDelivery,
  sent: SentRequest,
  outcome: SettledOutcome,
  by: { worker: string; workflowId: string | null },
): Promise<void> {
  await insertAttempt(trx, { ...attemptRecord(claim, sent, outcome), ...by });
  await recordProgress(trx, {
    deliveryDay: claim.deliveryDay,
    deliveryId: claim.deliveryId,
    state: outcome.state === 'delivered' || outcome.state === 'failed' ? outcome.state : 'pending',
    attempts: outcome.attempt,
    statusCode: sent.result.outcome === 'response' ? sent.result.statusCode : null,
    error: outcome.state === 'delivered' ? null : outcome.reason,
    nextDelayMs: outcome.state === 'retrying' ? outcome.delayMs : null,
  });
}

function attemptRecord(
  claim: ClaimedDelivery,
  { wabaId, url, startedAt, headers, result }: SentRequest,
  outcome: SettledOutcome,
): Omit<AttemptRecord, 'worker' | 'workflowId'> {
  const response = result.outcome === 'response' ? result : null;
  const error = result.outcome === 'error' ? result : null;
  const logged = Object.entries(headers).filter(([name]) => !UNLOGGED_HEADERS.has(name.toLowerCase()));
  return {
    deliveryId: claim.deliveryId,
    attempt: outcome.attempt,
    wabaId,
    endpointId: claim.endpointId,
    startedAt,
    durationMs: result.timings.totalMs,
    timingsJson: JSON.stringify(result.timings),
    statusCode: response?.statusCode ?? null,
    errorClass: error?.errorClass ?? null,
    errorMessage: error?.message ?? null,
    url,
    remoteAddress: result.remoteAddress,
    requestHeadersJson: JSON.stringify(Object.fromEntries(logged)),
    responseHeadersJson: response === null ? null : storableJson(response.headers),
    responseBody: response?.body ?? null,
  };
}

/** A receiver may send U+0000, which jsonb refuses; it must not be able to make its own attempt unrecordable. */
function storableJson(value: Record<string, string>): string {
  return JSON.stringify(value).replaceAll('\\u0000', '\\ufffd');
}
