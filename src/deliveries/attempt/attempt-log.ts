import { shownUrl } from '../../platform/http/outbound-url.ts';
import type { AttemptRecord } from '../log/attempt-record.ts';
import type { SettledDelivery } from '../queue/settle.ts';
import type { SendResult } from '../sender/send-result.ts';
import type { SettledOutcome } from './attempt-outcome.ts';
import type { SendableEndpoint } from './sendable-endpoint.ts';

/** One attempt that was made under a claim. */
export type MadeAttempt = {
  deliveryId: string;
  deliveryDay: string;
  token: string;
  /** Attempts before this one; `probes` of them used up no retry. */
  attempts: number;
  probes: number;
  eventUuid: string;
  eventType: string;
  eventId: string;
  replay: boolean;
  endpoint: SendableEndpoint;
  isProbe: boolean;
  sent: SentRequest;
  /** The workflow that carried it. */
  workflowId: string | null;
};

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

/** What is written of an attempt and its delivery. */
export function settledDelivery(attempt: MadeAttempt, outcome: SettledOutcome): SettledDelivery {
  const { deliveryId, deliveryDay, token, workflowId, probes } = attempt;
  const isFinal = outcome.state === 'delivered' || outcome.state === 'failed';
  const isDeferred = outcome.state === 'deferred';
  const usedNoRetry = isDeferred || (outcome.state === 'retrying' && outcome.isProbe);
  return {
    ...{ deliveryId, deliveryDay, token, workflowId },
    nextState: isFinal ? null : isDeferred ? 'due' : 'retrying',
    attempt: outcome.attempt,
    probes: usedNoRetry ? probes + 1 : probes,
    delayMs: outcome.state === 'retrying' ? outcome.delayMs : null,
    byWorkflow: outcome.state === 'retrying' && outcome.byWorkflow,
    logState: isFinal ? outcome.state : 'pending',
    error: outcome.state === 'delivered' ? null : outcome.reason,
    record: attemptRecord(attempt),
  };
}

/** Whether the delivery has a workflow, which would attempt it again. */
export function hasWorkflow({ workflowId }: Pick<MadeAttempt, 'workflowId'>): boolean {
  return workflowId?.startsWith('delivery/') === true;
}

function attemptRecord({ endpoint, sent }: MadeAttempt): AttemptRecord {
  const { wabaId, url, startedAt, headers, result } = sent;
  const response = result.outcome === 'response' ? result : null;
  const error = result.outcome === 'error' ? result : null;
  return {
    wabaId,
    endpointId: endpoint.id,
    startedAt,
    durationMs: result.timings.totalMs,
    timingsJson: JSON.stringify(result.timings),
    statusCode: response?.statusCode ?? null,
    errorClass: error?.errorClass ?? null,
    errorMessage: error?.message ?? null,
    url: shownUrl(url),
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
