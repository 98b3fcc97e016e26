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

/** Adds one attempt to the log. A repeated number is the trace of an attempt that was cut off: the first stays. */
export async function insertAttempt(trx: Transaction, attempt: AttemptRecord): Promise<void> {
  await execute(
    trx,
    `insert into attempts (delivery_id, attempt, waba_id, endpoint_id, started_at, duration_ms, timings, status_code,
                           error_class, error_message, url, remote_address, request_headers, response_headers,
                           response_body, worker, workflow_id)
     values (:deliveryId, :attempt, :wabaId, :endpointId, :startedAt, :durationMs, :timingsJson, :statusCode,
             :errorClass, :errorMessage, :url, :remoteAddress, :requestHeadersJson, :responseHeadersJson,
             :responseBody, :worker, :workflowId)
     on conflict do nothing`,
    attempt,
  );
}
