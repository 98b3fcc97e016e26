import { EVENT_TYPES, type EventType } from '../../platform/event-type.ts';
import { MAX_ID_CHARS } from '../../platform/json/storable-text.ts';
import { checkingMember, checkRowId, invalidValue, shown } from '../../platform/request-input.ts';
import type { AttemptAnswer, DeliveryFilter, DeliveryState } from '../log/delivery-filter.ts';
import type { SendErrorClass } from '../sender/send-error.ts';

export const DELIVERY_STATES = [
  'pending',
  'delivered',
  'failed',
  'dropped',
] as const satisfies readonly DeliveryState[];

/** Why an attempt had no answer, in the words of the log. */
const ERROR_CLASSES = [
  'dns',
  'refused',
  'reset',
  'tls',
  'timeout',
  'blocked_address',
  'too_large_header',
  'invalid_url',
  'closed',
  'protocol',
  'unreachable',
  'aborted',
  'other',
] as const satisfies readonly SendErrorClass[];

/** Which deliveries somebody looks for, as they write it; what is missing or empty restricts nothing. */
export type GivenDeliveryFilter = {
  state?: string | undefined;
  eventType?: string | undefined;
  endpointId?: string | undefined;
  /** `503`, `5xx` or the class of an error such as `timeout`. */
  answer?: string | undefined;
  since?: Date | undefined;
  until?: Date | undefined;
  /** An eventId, a Message_Id, an upstream message id, a `webhook-id` or the id of a delivery. */
  id?: string | undefined;
};

/** A filter that has been checked; `id` apart, because it leads to deliveries in another way. */
export type CheckedDeliveryFilter = { filter: DeliveryFilter; id: string | null };

/** Throws RequestError `invalid_value`, which names the member. */
export async function checkDeliveryFilter(given: GivenDeliveryFilter): Promise<CheckedDeliveryFilter> {
  const { since, until } = given;
  const filter = {
    state: await member('state', given.state, (name) => oneOf(DELIVERY_STATES, name)),
    eventType: await member('eventType', given.eventType, (name) => oneOf<EventType>(EVENT_TYPES, name)),
    endpointId: await member('endpointId', given.endpointId, (id) =>
      checkRowId('The id of the endpoint', id),
    ),
    answer: await member('answer', given.answer, checkAnswer),
    sinceMs: checkTime('since', since),
    untilMs: checkTime('until', until),
  };
  if (filter.sinceMs !== null && filter.untilMs !== null && filter.sinceMs >= filter.untilMs) {
    throw invalidValue('The time range is empty: its beginning must be before its end.', 'since');
  }
  return { filter, id: await member('id', given.id, checkId) };
}

async function member<T>(
  param: string,
  text: string | undefined,
  check: (text: string) => T,
): Promise<T | null> {
  const given = text?.trim() ?? '';
  return given === '' ? null : await checkingMember(param, () => check(given));
}

function oneOf<Name extends string>(names: readonly Name[], given: string): Name {
  const name = names.find((known) => known === given);
  if (name !== undefined) return name;
  throw invalidValue(`Choose one of ${names.join(', ')}, not ${shown(given)}.`);
}

function checkAnswer(given: string): AttemptAnswer {
  const text = given.toLowerCase();
  if (/^[1-5]\d\d$/.test(text)) return { kind: 'code', code: Number(text) };
  if (/^[1-5]xx$/.test(text)) return { kind: 'codeClass', hundreds: Number(text[0]) };
  const errorClass = ERROR_CLASSES.find((known) => known === text);
  if (errorClass !== undefined) return { kind: 'error', errorClass };
  throw invalidValue(
    `An answer is an HTTP code such as 503, a class such as 5xx, or one of ${ERROR_CLASSES.join(', ')}.`,
  );
}

const LAST_MS = Date.parse('9999-12-31T00:00:00Z');

function checkTime(param: string, time: Date | undefined): number | null {
  if (time === undefined) return null;
  const atMs = time.getTime();
  if (atMs >= 0 && atMs < LAST_MS) return atMs;
  throw invalidValue('A time must lie between the years 1970 and 9999.', param);
}

function checkId(text: string): string {
  if (text.length <= MAX_ID_CHARS && !text.includes('\0') && text.isWellFormed()) return text;
  throw invalidValue(`An id has 1 to ${MAX_ID_CHARS} characters.`);
}
