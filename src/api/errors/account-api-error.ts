import { type AccountError, RateLimitError } from '../../platform/account-error.ts';
import { ApiError, notFound } from './api-error.ts';
import { ERROR_CODES, type ErrorCode } from './error-codes.ts';

/** Codes of the accounts that are called otherwise here. */
const RENAMED: Readonly<Record<string, ErrorCode>> = {
  invalid_value: 'invalid_parameter',
  url_too_long: 'invalid_url',
  https_required: 'invalid_url',
  credentials_in_url: 'invalid_url',
  fragment_in_url: 'invalid_url',
  address_not_allowed: 'invalid_url',
};

/** Accounts that a path names; in a body they are told apart from it by their `param`. */
const NAMED_BY_PATH = new Set(['unknown_endpoint', 'unknown_replay']);

/**
 * What a refusal of the accounts is to a tenant. A code that no tenant can cause is a fault of ours.
 * The 404 is made afresh, because a text of its own could tell what exists.
 */
export function accountApiError(error: AccountError): ApiError {
  const { code, message, param } = error;
  if (param === null && NAMED_BY_PATH.has(code)) return notFound();
  const apiCode = RENAMED[code] ?? code;
  if (!isErrorCode(apiCode)) return new ApiError('internal_error', { cause: error });
  const member = param ?? (apiCode === 'invalid_url' ? 'url' : null);
  const headers = accountErrorHeaders(error);
  return new ApiError(apiCode, { message, cause: error, headers, ...(member !== null && { param: member }) });
}

/** The headers of an answer that tells of it, on a page too. */
export function accountErrorHeaders(error: AccountError): Record<string, string> {
  return error instanceof RateLimitError ? { 'retry-after': String(error.retryAfterSeconds) } : {};
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}
