import { ALL_UPSTREAM, EVENT_TYPES, type EventType, eventTypeNamed } from '../../platform/event-type.ts';
import { invalidValue, shown } from '../../platform/request-input.ts';
import { MAX_RETRY_DELAY_MS, MIN_RETRY_DELAY_MS } from '../../platform/retry-schedule.ts';
import { wholeNumber } from './setting.ts';

export const DAY_SECONDS = 86_400;
export const MAX_RETRIES = 20;

export function checkEventTypes(names: readonly string[]): EventType[] {
  const known = `${EVENT_TYPES.join(', ')}, upstream.<field>, ${ALL_UPSTREAM}`;
  if (names.length === 0) throw invalidValue(`Name at least one event type of ${known}.`);
  return [...new Set(names)].map((name) => {
    const type = eventTypeNamed(name);
    if (type !== null) return type;
    // Each of its items is an event already.
    const why =
      name === 'upstream.messages' ? ' The field messages comes as message, status, payment and order.' : '';
    throw invalidValue(`An event type must be one of ${known}, not ${shown(String(name))}.${why}`);
  });
}

export function checkPhoneNumberIds(given: readonly string[]): string[] {
  const ids = [...new Set(given)];
  if (ids.length === 0) throw invalidValue('Name at least one phone number id.');
  return ids;
}

export function checkRetrySchedule(seconds: readonly number[]): number[] {
  if (seconds.length < 1 || seconds.length > MAX_RETRIES) {
    throw invalidValue(`The retry schedule must have 1 to ${MAX_RETRIES} waits, not ${seconds.length}.`);
  }
  const [minimum, maximum] = [MIN_RETRY_DELAY_MS / 1_000, MAX_RETRY_DELAY_MS / 1_000];
  for (const wait of seconds) {
    wholeNumber('Each wait of the retry schedule, in seconds,', wait, minimum, maximum);
  }
  const total = seconds.reduce((sum, wait) => sum + wait, 0);
  if (total > 7 * DAY_SECONDS) {
    throw invalidValue(
      `The waits of the retry schedule may be 7 days (${7 * DAY_SECONDS} s) together, not ${total} s.`,
    );
  }
  return [...seconds];
}
