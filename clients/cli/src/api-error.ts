import type { Error as ApiErrorBody } from '../../typescript/src/generated/types.gen.js';

/** The body of an error response; it may be of something else than the service. */
export type ErrorBody = Partial<ApiErrorBody> | null;

/** What an error response says, for people; null when it is not the service's. */
export function messageOf(body: ErrorBody): string | null {
  const error = body?.error;
  if (typeof error?.code !== 'string') return null;
  const param = error.param === null ? '' : ` (${error.param})`;
  const advice = error.advice === undefined ? '' : ` ${error.advice}`;
  return `${error.message}${param}${advice} [${error.code}, ${error.requestId}]`;
}
