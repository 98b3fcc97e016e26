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
  } & ErrorExtras;
};

/** What only some errors say. */
export type ErrorExtras = {
  /** What to do about it, where the code alone does not tell. */
  advice?: string;
  /** The message that the request made and that was not sent. */
  serviceMessageId?: string;
  /** The upstream platform's error as it came. */
  upstream?: Readonly<Record<string, unknown>>;
};

/** Shapes an error answer; `publicUrl` is where the documentation is. */
export function errorBody(
  error: { code: ErrorCode; message: string; param: string | null },
  { publicUrl, requestId }: { publicUrl: string; requestId: string },
  extras: ErrorExtras = {},
): ErrorBody {
  const { code, message, param } = error;
  const docUrl = `${publicUrl}/docs/errors#${code}`;
  return { error: { type: ERROR_CODES[code].type, code, message, param, docUrl, requestId, ...extras } };
}
