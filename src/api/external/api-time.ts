import { Type } from 'typebox';
import { ApiError } from '../errors/api-error.ts';

/** A time as tenants write it: ISO 8601 with a zone. */
export const Time = Type.String({
  format: 'date-time',
  pattern: '^\\d{4}-\\d{2}-\\d{2}T[0-9:.]{5,18}(Z|[+-]\\d{2}:\\d{2})$',
});

/** The instant a parameter names; null without one. Throws ApiError 400. */
export function timeOf(param: string, text: string | undefined): Date | null {
  if (text === undefined) return null;
  const time = new Date(text);
  if (Number.isFinite(time.getTime()) && time.getTime() >= 0) return time;
  throw new ApiError('invalid_parameter', {
    param,
    message: 'The parameter must be a time such as 2027-01-31T12:00:00Z.',
  });
}
