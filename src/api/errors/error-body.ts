import { ERROR_CODES, type ErrorCode } from './error-codes.ts';

/** What every error answer holds, whatever raised it. */
export type ErrorBody = {
  error: {
    type: string;
    code: ErrorCode;
    message: string;
    param: string | null;
    docUrl: string;
    requestId: string;
  };
};

/** Shapes an error answer; `publicUrl` is where the documentation is. */
export function errorBody(
  error: { code: ErrorCode; message: string; param: string | null },
  { publicUrl, requestId }: { publicUrl: string; requestId: string },
): ErrorBody {
  const { code, message, param } = error;
  const docUrl = `${publicUrl}/docs/errors#${code}`;
  return { error: { type: ERROR_CODES[code].type, code, message, param, docUrl, requestId } };
}
