import { ERROR_CODES, type ErrorCode } from './error-codes.ts';

type Details = {
  /** Public text, in place of the code's own. */
  message?: string;
  param?: string;
  headers?: Readonly<Record<string, string>>;
  extras?: ErrorExtras;
  /** What really happened: for the log, never for the answer. */
  cause?: unknown;
};

/** Its message, code and parameter may be shown to the client. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly param: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly extras: ErrorExtras;
  constructor(code: ErrorCode, details: Details = {}) {
    super(details.message ?? ERROR_CODES[code].message, { cause: details.cause });
    this.name = 'ApiError';
    this.code = code;
    this.status = ERROR_CODES[code].status;
    this.param = details.param ?? null;
    this.headers = details.headers ?? {};
    this.extras = details.extras ?? {};
  }
}

/** The same 404 for what is missing and for what belongs to another tenant. */
export function notFound(): ApiError {
  return new ApiError('not_found');
}

/** 400; `param` empty: the request as a whole is wrong. */
export function invalidParameter(param: string, message: string): ApiError {
  return new ApiError('invalid_parameter', { ...(param !== '' && { param }), message });
}

const RETRY_AFTER_SECONDS = '2';

/** 503: something we depend on is away or full, and trying again helps. */
export function unavailable(cause: unknown): ApiError {
  return new ApiError('service_unavailable', { cause, headers: { 'retry-after': RETRY_AFTER_SECONDS } });
}

export type ErrorBody = {
  error: {
    type: string;
    code: ErrorCode;
    message: string;
    param: string | null;
    docUrl: string;
    requestId: string;
  } & ErrorExtras;
};

type ErrorExtras = {
  /** What to do about it, where the code alone does not tell. */
  advice?: string;
  serviceMessageId?: string;
  upstream?: Readonly<Record<string, unknown>>;
  /** What the recipient wants no more. */
  optOut?: { scope: string; source: string; since: Date };
  /** What the service does not know of the message that upstream refused. */
  warnings?: readonly { param: string; message: string }[];
};

export function errorBody(
  error: { code: ErrorCode; message: string; param: string | null },
  { publicUrl, requestId }: { publicUrl: string; requestId: string },
  extras: ErrorExtras = {},
): ErrorBody {
  const { code, message, param } = error;
  const docUrl = `${publicUrl}/docs/errors#${code}`;
  return { error: { type: ERROR_CODES[code].type, code, message, param, docUrl, requestId, ...extras } };
}
