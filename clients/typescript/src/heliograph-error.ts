import type { Error as ErrorBody, ErrorCode } from './generated/types.gen.js';

/** An answer of the service that is an error. */
export class HeliographError extends Error {
  override readonly name = 'HeliographError';
  /** HTTP status. */
  readonly status: number;
  /** What programs tell errors apart by; `unknown` when something between you and the service answered. */
  readonly code: ErrorCode | 'unknown';
  /** The answer as it came: `param`, `docUrl`, `requestId` and what else there is; null when it was not the service's. */
  readonly details: ErrorBody['error'] | null;
  /** How long to wait before trying again, in seconds, when the answer says so. */
  readonly retryAfterSeconds: number | null;

  constructor(response: Response, details: ErrorBody['error'] | null) {
    super(details === null ? `HTTP ${response.status}` : `${details.message} (${details.requestId})`);
    this.status = response.status;
    this.code = details?.code ?? 'unknown';
    this.details = details;
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
    this.retryAfterSeconds = Number.isFinite(retryAfter) ? retryAfter : null;
  }
}

/** What a request throws: a HeliographError for an answer, and otherwise what `fetch` threw. */
export function errorOf(body: unknown, response: Response | undefined): unknown {
  return response === undefined ? body : new HeliographError(response, detailsOf(body));
}

function detailsOf(body: unknown): ErrorBody['error'] | null {
  const details = (body as Partial<ErrorBody> | null | undefined)?.error;
  return typeof details?.code === 'string' ? details : null;
}
