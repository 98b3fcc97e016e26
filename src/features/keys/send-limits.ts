import type { Transaction } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';
import { invalidValue, RateLimitError, shown } from '../../platform/request-input.ts';

/** `open_conversations`: only those whose customer service window is open, since they wrote within 24 hours. */
export const KEY_RECIPIENTS = ['any', 'open_conversations'] as const;

/** What may be sent with a key that can send. */
export type SendLimits = {
  /** Messages on one UTC day; null: no limit. */
  maxMessagesPerDay: number | null;
  recipients: (typeof KEY_RECIPIENTS)[number];
};

export type GivenSendLimits = { maxMessagesPerDay?: number | null; recipients?: string };

const MOST_PER_DAY = 1_000_000_000;

/** What is left out stays as it is in `before`, no limit unless given. Throws RequestError `invalid_value` with `param`. */
export function checkSendLimits(
  given: GivenSendLimits,
  before: SendLimits = { maxMessagesPerDay: null, recipients: 'any' },
): SendLimits {
  const { maxMessagesPerDay = before.maxMessagesPerDay, recipients: wanted = before.recipients } = given;
  const isWhole = maxMessagesPerDay === null || Number.isInteger(maxMessagesPerDay);
  if (
    !isWhole ||
    (maxMessagesPerDay !== null && (maxMessagesPerDay < 1 || maxMessagesPerDay > MOST_PER_DAY))
  ) {
    const message = `The messages per day must be a whole number from 1 to ${MOST_PER_DAY}.`;
    throw invalidValue(message, 'maxMessagesPerDay');
  }
  const recipients = KEY_RECIPIENTS.find((one) => one === wanted);
  if (recipients !== undefined) return { maxMessagesPerDay, recipients };
  const message = `The recipients must be ${KEY_RECIPIENTS.join(' or ')}, not ${shown(wanted)}.`;
  throw invalidValue(message, 'recipients');
}

/** The limits as people read them: of messages, and of recipients. */
export function sendLimitTexts({ maxMessagesPerDay, recipients }: SendLimits): [string, string] {
  const most = maxMessagesPerDay === null ? 'no limit' : `at most ${maxMessagesPerDay} per UTC day`;
  return [most, recipients === 'any' ? 'any' : 'only open conversations'];
}

const TODAY = `(now() at time zone 'utc')::date`;
const DAY_MS = 86_400_000;

/**
 * Counts a message of a key that has a limit of them. One statement on one row: of many processes none counts beyond it.
 * Throws RateLimitError `message_limit_reached`, and then the transaction must not be committed.
 */
export async function countMessageOfKey(trx: Transaction, wabaId: string, keyId: string): Promise<void> {
  const counted = await execute(
    trx,
    `update api_keys
        set sent_messages = case when sent_day = ${TODAY} then sent_messages else 0 end + 1, sent_day = ${TODAY}
      where waba_id = :wabaId and id = :keyId
        and (max_messages_per_day is null or sent_day is distinct from ${TODAY} or sent_messages < max_messages_per_day)`,
    { wabaId, keyId },
  );
  if (counted === 1) return;
  const message = 'The API key has reached its limit of messages on one UTC day.';
  throw new RateLimitError(message, DAY_MS - (Date.now() % DAY_MS), 'message_limit_reached');
}
