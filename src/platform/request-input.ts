import { isRowId } from './public-ids.ts';

/** Why a request is refused. `code` is for programs, `message` for people; neither holds a secret. */
export class RequestError extends Error {
  /** `invalid_value`: the request is malformed; every other code refuses a well-formed one. */
  readonly code: string;
  readonly param: string | null;
  constructor(code: string, message: string, param: string | null = null) {
    super(message);
    this.name = 'RequestError';
    this.code = code;
    this.param = param;
  }
}

/** Too many requests; the same one is served after `retryAfterSeconds`. */
export class RateLimitError extends RequestError {
  readonly retryAfterSeconds: number;
  constructor(message: string, waitMs: number, code = 'rate_limit_exceeded') {
    super(code, message);
    this.name = 'RateLimitError';
    this.retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
  }
}

/** A value that can never be accepted, whatever is stored. */
export function invalidValue(message: string, param: string | null = null): RequestError {
  return new RequestError('invalid_value', message, param);
}

/** Runs a check of one member of a request, and has the error say which. Throws what `check` throws. */
export async function checkingMember<T>(param: string, check: () => T | Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof RequestError) || error instanceof RateLimitError) throw error;
    throw new RequestError(error.code, error.message, param);
  }
}

const UPSTREAM_ID = /^\d{1,64}$/;
const ACCESS_TOKEN = /^[\x21-\x7e]{1,4096}$/;
const MAX_NAME_CHARS = 200;
const CONTROL_CHARACTER = /[\p{Cc}\p{Zl}\p{Zp}]/u;
const SHOWN_CHARS = 80;

/** An id that upstream gave, such as a WABA's: up to 64 digits. Throws RequestError `invalid_value`. */
export function checkUpstreamId(what: string, id: string): string {
  if (UPSTREAM_ID.test(id)) return id;
  throw invalidValue(`${what} must be 1 to 64 digits, not ${shown(id)}.`);
}

/** An id that our database gave. Throws RequestError `invalid_value`. */
export function checkRowId(what: string, id: string): string {
  if (isRowId(id)) return id;
  throw invalidValue(`${what} must be a whole number, not ${shown(id)}.`);
}

const LAST_MS = Date.parse('9999-12-31T00:00:00Z');

/** Returns Unix time in ms. Throws RequestError `invalid_value`, which names `param`. */
export function checkTime(time: Date, param: string | null = null): number {
  const atMs = time.getTime();
  if (atMs >= 0 && atMs < LAST_MS) return atMs;
  throw invalidValue('A time must lie between the years 1970 and 9999.', param);
}

/** A name for people: one line of up to 200 characters, trimmed. Throws RequestError `invalid_value`. */
export function checkName(what: string, text: string): string {
  const name = checkDescription(what, text);
  if (name === '') throw invalidValue(`${what} must not be empty.`);
  return name;
}

/** As `checkName`, and may be empty. Throws RequestError `invalid_value`. */
export function checkDescription(what: string, text: string): string {
  const name = text.trim();
  if (name.length > MAX_NAME_CHARS) {
    throw invalidValue(
      `${what} must have at most ${MAX_NAME_CHARS} characters; this one has ${name.length}.`,
    );
  }
  if (CONTROL_CHARACTER.test(name) || !name.isWellFormed()) {
    throw invalidValue(`${what} must be one line of text without control characters.`);
  }
  return name;
}

/** An upstream access token; the message of the error never holds it. Throws RequestError `invalid_value`. */
export function checkAccessToken(text: string): string {
  const token = text.trim();
  if (ACCESS_TOKEN.test(token)) return token;
  throw invalidValue(
    'The access token must be 1 to 4096 visible ASCII characters on one line; copy it once more.',
  );
}

/** A refused value as it may stand in a message: quoted, on one line, not too long. */
export function shown(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text);
}
