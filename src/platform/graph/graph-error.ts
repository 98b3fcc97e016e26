import { parseRetryAfter } from '../http/retry-after.ts';

type GraphErrorParts = {
  /** Null when there was no answer at all. */
  httpStatus: number | null;
  code: number | null;
  subcode: number | null;
  message: string;
  transient: boolean;
  retryAfterMs: number | null;
  /** Upstream's error object as it came; null when the answer held none. */
  upstream: Readonly<Record<string, unknown>> | null;
};

/** The upstream platform did not give what was asked for. `message` holds no token and no address with a signature. */
export class GraphError extends Error implements GraphErrorParts {
  readonly httpStatus: number | null;
  readonly code: number | null;
  readonly subcode: number | null;
  readonly transient: boolean;
  readonly retryAfterMs: number | null;
  readonly upstream: Readonly<Record<string, unknown>> | null;

  constructor(
    parts: Omit<GraphErrorParts, 'retryAfterMs' | 'upstream'> &
      Partial<Pick<GraphErrorParts, 'retryAfterMs' | 'upstream'>> & { cause?: unknown },
  ) {
    super(parts.message, { cause: parts.cause });
    this.name = 'GraphError';
    this.httpStatus = parts.httpStatus;
    this.code = parts.code;
    this.subcode = parts.subcode;
    this.transient = parts.transient;
    this.retryAfterMs = parts.retryAfterMs ?? null;
    this.upstream = parts.upstream ?? null;
  }
}

/** Codes for rate limits and outages, whatever HTTP status they come with. */
const TRANSIENT_CODES = new Set([
  2, 4, 80007, 130429, 131000, 131016, 131056, 131057, 131208, 133004, 133016, 2494100,
]);
/** Codes that say "not your role", whatever HTTP status they come with: another call gets the same answer. */
const ROLE_CODES = new Set([138038, 2494191]);
const TOKEN_CODES = new Set([0, 190]);
const OBJECT_GONE = { code: 100, subcode: 33 };
const MAX_MESSAGE_CHARS = 500;

/** Reads the error of an answer with a status other than 2xx; `body` is the parsed JSON, or null when it was none. */
export function graphErrorOf(answer: {
  status: number;
  retryAfter: string | undefined;
  body: unknown;
}): GraphError {
  const { status } = answer;
  const error = memberOf(answer.body, 'error');
  const code = integerOf(memberOf(error, 'code'));
  const isTransient =
    !(code !== null && ROLE_CODES.has(code)) &&
    (status === 429 ||
      status >= 500 ||
      (code !== null && TRANSIENT_CODES.has(code)) ||
      memberOf(error, 'is_transient') === true);
  return new GraphError({
    httpStatus: status,
    code,
    subcode: integerOf(memberOf(error, 'error_subcode')),
    message: messageOf(error) ?? `The upstream platform answered ${status}.`,
    transient: isTransient,
    retryAfterMs: parseRetryAfter(answer.retryAfter, Date.now()),
    upstream: typeof error === 'object' && error !== null ? (error as Record<string, unknown>) : null,
  });
}

/** The request got no usable answer: the network failed, time ran out, or the answer was not JSON. */
export function noAnswer(reason: string, cause?: unknown): GraphError {
  return new GraphError({
    httpStatus: null,
    code: null,
    subcode: null,
    message: `The upstream platform gave no answer: ${reason}.`,
    transient: true,
    cause,
  });
}

export function isTokenError({ httpStatus, code }: Pick<GraphError, 'httpStatus' | 'code'>): boolean {
  return httpStatus === 401 || (code !== null && TOKEN_CODES.has(code));
}

/** The object is gone, or never was this account's. */
export function isObjectGone({ code, subcode }: GraphError): boolean {
  return code === OBJECT_GONE.code && subcode === OBJECT_GONE.subcode;
}

function messageOf(error: unknown): string | null {
  const message = memberOf(error, 'message');
  return typeof message === 'string' && message !== '' ? message.slice(0, MAX_MESSAGE_CHARS) : null;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function integerOf(value: unknown): number | null {
  const number = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : null;
}
