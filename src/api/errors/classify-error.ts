import { AccountError } from '../../platform/account-error.ts';
import { ObjectStoreUnavailable } from '../../platform/object-store/object-store-error.ts';
import { isTransientError } from '../../platform/postgres/error-class.ts';
import { accountApiError } from './account-api-error.ts';
import { ApiError, unavailable } from './api-error.ts';
import type { ErrorCode } from './error-codes.ts';

const FRAMEWORK_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
  FST_ERR_NOT_FOUND: 'route_not_found',
  FST_ERR_CTP_INVALID_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_json',
};

/** What to answer for anything that was thrown. Everything unknown is a 500 that keeps its cause to itself. */
export function classifyError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof AccountError) return accountApiError(error);
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
