const MAX_RETRY_AFTER_MS = 24 * 60 * 60 * 1_000;

/** The three date forms of RFC 9110 §5.6.7; Date.parse alone would also take `2 foo` for a date. */
const HTTP_DATE_FORMS = [
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
];

/**
 * Ms that a Retry-After header (RFC 9110 §10.2.3: whole seconds or an HTTP date) asks to wait, at most 24 hours;
 * 0 for a date in the past, null for a missing or malformed header. `nowMs` is Unix time.
 */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | null {
  const value = header?.trim() ?? '';
  if (/^\d+$/.test(value)) return Math.min(Number(value) * 1_000, MAX_RETRY_AFTER_MS);
  if (!HTTP_DATE_FORMS.some((form) => form.test(value))) return null;
  const dateMs = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`);
  return Number.isNaN(dateMs) ? null : Math.min(Math.max(dateMs - nowMs, 0), MAX_RETRY_AFTER_MS);
}
