import type { Transaction } from './database.ts';
import { execute } from './sql.ts';

export type AttemptRecord = {
  deliveryId: string;
  attempt: number;
  wabaId: string;
  endpointId: string;
  startedAt: Date;
  durationMs: number;
  timingsJson: string;
  statusCode: number | null;
  errorClass: string | null;
  errorMessage: string | null;
  url: string;
  remoteAddress: string | null;
  requestHeadersJson: string;
  responseHeadersJson: string | null;
  responseBody: Buffer | null;
  worker: string;
  workflowId: string | null;
};

/**
 * Adds attempts to the log. A repeated number is the trace of an attempt that was cut off: the first stays.
 * The text columns go as arrays, so a group costs about as much as one.
 */
export async function insertAttempts(trx: Transaction, attempts: readonly AttemptRecord[]): Promise<void> {
  if (attempts.length === 0) return;
  await execute(
    trx,
    `insert into attempts (delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, timings, status_code,
                           error_class, error_message, url, remote_address, request_headers, response_headers,
                           response_body, worker, workflow_id)
     select * from unnest(?::uuid[], ?::integer[], ?::text[], ?::bigint[], ?::timestamptz[], ?::float8[], ?::jsonb[],
                          ?::integer[], ?::text[], ?::text[], ?::text[], ?::text[], ?::jsonb[], ?::jsonb[],
                          ?::bytea[], ?::text[], ?::text[])
     on conflict do nothing`,
    [
      attempts.map((a) => a.deliveryId),
      attempts.map((a) => a.attempt),
      attempts.map((a) => a.wabaId),
      attempts.map((a) => a.endpointId),
      attempts.map((a) => a.startedAt),
      attempts.map((a) => a.durationMs),
      attempts.map((a) => a.timingsJson),
      attempts.map((a) => a.statusCode),
      attempts.map((a) => a.errorClass),
      attempts.map((a) => a.errorMessage),
      attempts.map((a) => a.url),
      attempts.map((a) => a.remoteAddress),
      attempts.map((a) => a.requestHeadersJson),
      attempts.map((a) => a.responseHeadersJson),
      attempts.map((a) => a.responseBody),
      attempts.map((a) => a.worker),
      attempts.map((a) => a.workflowId),
    ],
  );
}
