/** One attempt, as it is logged. A repeated number is the trace of an attempt that was cut off: the first stays. */
export type AttemptRecord = {
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
};
