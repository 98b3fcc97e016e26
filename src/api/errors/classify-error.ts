import { ObjectStoreUnavailable } from '../../platform/object-store/object-store.ts';
import { isTransientError } from '../../platform/postgres/error-class.ts';
import { RateLimitError, RequestError } from '../../platform/request-input.ts';
import { ApiError, notFound, unavailable } from './api-error.ts';
import { ERROR_CODES, type ErrorCode } from './error-codes.ts';

const FRAMEWORK_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
  FST_ERR_NOT_FOUND: 'route_not_found',
  FST_ERR_CTP_INVALID_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_json',
};

/** The API error for anything that was thrown. What is unknown is a 500 whose cause is only logged. */
export function classifyError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof RequestError) return refusalAsApiError(error);
  const { code, statusCode } = frameworkPartsOf(error);
  const known = code === null ? undefined : FRAMEWORK_CODES[code];
  if (known !== undefined) return new ApiError(known, { cause: error });
  if (
    code === 'FST_ERR_HANDLER_TIMEOUT' ||
    error instanceof ObjectStoreUnavailable ||
    isTransientError(error)
  ) {
    return unavailable(error);
  }
  if (statusCode !== null && statusCode >= 400 && statusCode < 500) {
    return new ApiError('invalid_request', { cause: error });
  }
  return new ApiError('internal_error', { cause: error });
}

function frameworkPartsOf(error: unknown): { code: string | null; statusCode: number | null } {
  if (!(error instanceof Error)) return { code: null, statusCode: null };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  const statusCode = 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : null;
  return { code, statusCode };
}

/** Codes of refusals that have another name in the API. */
const RENAMED: Readonly<Record<string, ErrorCode>> = {
  invalid_value: 'invalid_parameter',
  url_too_long: 'invalid_url',
  https_required: 'invalid_url',
  credentials_in_url: 'invalid_url',
  fragment_in_url: 'invalid_url',
  address_not_allowed: 'invalid_url',
};

/** Objects that a path can name; one that a body names has a `param`. */
const NAMED_BY_PATH = new Set(['unknown_endpoint', 'unknown_replay']);

/** A code that no tenant can cause is our fault: 500. The 404 has the common text, which does not tell what exists. */
function refusalAsApiError(error: RequestError): ApiError {
  const { code, message, param } = error;
  if (param === null && NAMED_BY_PATH.has(code)) return notFound();
  const apiCode = RENAMED[code] ?? code;
  if (!isErrorCode(apiCode)) return new ApiError('internal_error', { cause: error });
  const member = param ?? (apiCode === 'invalid_url' ? 'url' : null);
  const headers = refusalHeaders(error);
  return new ApiError(apiCode, { message, cause: error, headers, ...(member !== null && { param: member }) });
}

/** The headers of the response to a refused request, in the API and in the portal. */
export function refusalHeaders(error: RequestError): Record<string, string> {
  return error instanceof RateLimitError ? { 'retry-after': String(error.retryAfterSeconds) } : {};
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}
