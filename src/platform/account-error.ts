/** Why a tenant, WABA, key or endpoint was not changed. `code` is for programs, `message` for people; no secrets. */
export class AccountError extends Error {
  /** `invalid_value`: the request itself is malformed; everything else is a refusal of a well-formed one. */
  readonly code: string;
  /** The member of the request that is wrong, where one is. */
  readonly param: string | null;
  constructor(code: string, message: string, param: string | null = null) {
    super(message);
    this.name = 'AccountError';
    this.code = code;
    this.param = param;
  }
}

/** Too much of something in a while; the same request is served after `retryAfterSeconds`. */
export class RateLimitError extends AccountError {
  readonly retryAfterSeconds: number;
  constructor(message: string, waitMs: number) {
    super('rate_limit_exceeded', message);
    this.name = 'RateLimitError';
    this.retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
  }
}

/** A value that can never be accepted, whatever is stored. */
export function invalidValue(message: string, param: string | null = null): AccountError {
  return new AccountError('invalid_value', message, param);
}

/** Runs a check of one member of a request, and has the error say which. Throws what `check` throws. */
export async function checkingMember<T>(param: string, check: () => T | Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof AccountError)) throw error;
    throw new AccountError(error.code, error.message, param);
  }
}
