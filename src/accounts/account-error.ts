/** Why a tenant, WABA, key or endpoint was not changed. `code` is for programs, `message` for people; no secrets. */
export class AccountError extends Error {
  /** `invalid_value`: the request itself is malformed; everything else is a refusal of a well-formed one. */
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.name = 'AccountError';
    this.code = code;
  }
}

/** A value that can never be accepted, whatever is stored. */
export function invalidValue(message: string): AccountError {
  return new AccountError('invalid_value', message);
}
