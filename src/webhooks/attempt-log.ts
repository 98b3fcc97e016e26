import type { AttemptRecord } from '../database/attempts.ts';
import type { DeliveryProgress } from '../database/deliveries.ts';
import type { SettledOutcome } from './attempt-outcome.ts';
import type { SendResult } from './send-result.ts';
import type { MadeAttempt } from './settle-attempts.ts';

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

/** What the log says of the delivery after an attempt. */
export function progressOf(attempt: MadeAttempt, outcome: SettledOutcome): DeliveryProgress {
  const { result } = attempt.sent;
  return {
    deliveryDay: attempt.deliveryDay,
    deliveryId: attempt.deliveryId,
    state: outcome.state === 'delivered' || outcome.state === 'failed' ? outcome.state : 'pending',
    attempts: outcome.attempt,
    statusCode: result.outcome === 'response' ? result.statusCode : null,
    error: outcome.state === 'delivered' ? null : outcome.reason,
    nextDelayMs: outcome.state === 'retrying' || outcome.state === 'parked' ? outcome.delayMs : null,
    workflowId: attempt.workflowId,
  };
}

/** What the log says of the attempt itself. */
export function attemptRecord(
  { deliveryId, endpoint, sent }: MadeAttempt,
  outcome: SettledOutcome,
): Omit<AttemptRecord, 'worker' | 'workflowId'> {
  const { wabaId, url, startedAt, headers, result } = sent;
  const response = result.outcome === 'response' ? result : null;
  const error = result.outcome === 'error' ? result : null;
  return {
    deliveryId,
    attempt: outcome.attempt,
    wabaId,
    endpointId: endpoint.id,
    startedAt,
    durationMs: result.timings.totalMs,
    timingsJson: JSON.stringify(result.timings),
    statusCode: response?.statusCode ?? null,
    errorClass: error?.errorClass ?? null,
    errorMessage: error?.message ?? null,
    url,
    remoteAddress: result.remoteAddress,
    requestHeadersJson: JSON.stringify(loggedHeaders(headers, endpoint.customHeaders)),
    responseHeadersJson: response === null ? null : storableJson(response.headers),
    responseBody: response?.body ?? null,
  };
}

/** The tenant's own headers may hold credentials: their names are logged, their values are not. */
function loggedHeaders(
  headers: Record<string, string>,
  customHeaders: Record<string, string>,
): Record<string, string> {
  const logged: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (UNLOGGED_HEADERS.has(name.toLowerCase())) continue;
    logged[name] = name in customHeaders ? '(not shown)' : value;
  }
  return logged;
}

/** A receiver may send U+0000, which jsonb refuses; it must not be able to make its own attempt unrecordable. */
function storableJson(value: Record<string, string>): string {
  return JSON.stringify(value).replaceAll('\\u0000', '\\ufffd');
}
