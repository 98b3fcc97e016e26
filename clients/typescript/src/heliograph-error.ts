import type { Error as ErrorBody, ErrorCode } from './generated/types.gen.js';

/** An answer of the service that is an error. */
export class HeliographError extends Error {
  override readonly name = 'HeliographError';
  /** HTTP status. */
  readonly status: number;
  /** What programs tell errors apart by; `unknown` when something between you and the service answered. */
  readonly code: ErrorCode | 'unknown';
  /** Names the request in the logs of the service; null when it was not the service that answered. */
  readonly requestId: string | null;
  /** The answer as it came: `param`, `docUrl`, `upstream` and what else there is; null when it was not the service's. */
  readonly details: ErrorBody['error'] | null;
  /** How long to wait before trying again, in seconds, when the answer says so. */
  readonly retryAfterSeconds: number | null;

  constructor(response: Response, details: ErrorBody['error'] | null) {
    super(details === null ? `HTTP ${response.status}` : `${details.message} (${details.requestId})`);
    this.status = response.status;
    this.code = details?.code ?? 'unknown';
    this.requestId = details?.requestId ?? response.headers.get('x-request-id');
    this.details = details;
    this.retryAfterSeconds = retryAfterSecondsOf(response.headers);
  }
}

/** There was no answer: the request may or may not have been carried out. `cause` is what `fetch` threw. */
export class HeliographConnectionError extends Error {
  override readonly name: string = 'HeliographConnectionError';

  constructor(message: string, options?: { cause: unknown }) {
    super(message, options);
  }
}

/** There was no answer in time. */
export class HeliographTimeoutError extends HeliographConnectionError {
  override readonly name = 'HeliographTimeoutError';
}

/** What a request throws: a HeliographError for an answer, and otherwise what `fetch` threw. */
export function errorOf(body: unknown, response: Response | undefined): unknown {
  return response === undefined ? body : new HeliographError(response, detailsOf(body));
}

/** The seconds of `Retry-After`, which is a number or a date; null when there is none. */
export function retryAfterSecondsOf(headers: Headers): number | null {
  const value = headers.get('retry-after')?.trim() ?? '';
  if (/^\d+$/.test(value)) return Number(value);
  const atMs = /[a-z]/i.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(atMs) ? null : Math.max(0, Math.ceil((atMs - Date.now()) / 1_000));
}

function detailsOf(body: unknown): ErrorBody['error'] | null {
  const details = (body as Partial<ErrorBody> | null | undefined)?.error;
  return typeof details?.code === 'string' ? details : null;
}
