import { readIsoTime } from '../../../platform/iso-time.ts';
import { invalidValue } from '../../../platform/request-input.ts';

/** When a message is sent, instead of at once. */
export type SendTimes = {
  sendAt: Date;
  /** After it the message fails instead; null: it is retried as long as any message. */
  notAfter: Date | null;
};

const LEAST_AHEAD_MS = 30_000;
const MOST_AHEAD_DAYS = 35;
/** Longer than any message is retried. */
const LONGEST_TRY_DAYS = 7;
const DAY_MS = 86_400_000;

/**
 * The times of a request; null: it is sent at once. A time has its offset, so that no change of clocks for summer makes it mean two
 * moments or none. Throws RequestError `invalid_value`, which names the member.
 */
export function readSendTimes(
  { sendAt, notAfter }: { sendAt?: unknown; notAfter?: unknown },
  now = Date.now(),
): SendTimes | null {
  if (sendAt === undefined) {
    if (notAfter === undefined) return null;
    throw invalidValue('It needs sendAt.', 'notAfter');
  }
  const at = readTime(sendAt, 'sendAt');
  const aheadMs = at.getTime() - now;
  if (aheadMs < LEAST_AHEAD_MS) {
    throw invalidValue(
      `The time must be at least ${LEAST_AHEAD_MS / 1_000} seconds ahead; it is now ${new Date(now).toISOString()}.`,
      'sendAt',
    );
  }
  if (aheadMs > MOST_AHEAD_DAYS * DAY_MS) {
    throw invalidValue(`The time must be at most ${MOST_AHEAD_DAYS} days ahead.`, 'sendAt');
  }
  const last = notAfter === undefined ? null : readTime(notAfter, 'notAfter');
  if (last !== null && (last <= at || last.getTime() - at.getTime() > LONGEST_TRY_DAYS * DAY_MS)) {
    throw invalidValue(`The time must be behind sendAt, by at most ${LONGEST_TRY_DAYS} days.`, 'notAfter');
  }
  return { sendAt: at, notAfter: last };
}

/** As RFC 3339 has it: with seconds, and no hour 24. */
const TIME = /T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

function readTime(value: unknown, param: string): Date {
  const time = typeof value === 'string' && TIME.test(value) ? readIsoTime(value) : null;
  if (time !== null) return time;
  throw invalidValue(
    'The parameter must be a time with its offset, such as 2026-12-01T09:00:00+01:00 or 2026-12-01T08:00:00Z.',
    param,
  );
}
