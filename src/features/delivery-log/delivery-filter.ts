import { EVENT_TYPES, type EventType, eventTypeNamed, typeIsAmong } from '../../platform/event-type.ts';
import { MAX_ID_CHARS } from '../../platform/json/storable-text.ts';
import type { Binding } from '../../platform/postgres/sql.ts';
import { checkingMember, checkRowId, checkTime, invalidValue, shown } from '../../platform/request-input.ts';
import { SEND_ERROR_CLASSES } from '../../platform/sender/send-error.ts';
import { DELIVERY_STATES, type DeliveryState } from './deliveries.ts';

/** Which deliveries are looked for, as the user writes it; what is missing or empty restricts nothing. */
export type GivenDeliveryFilter = {
  state?: string | undefined;
  eventType?: string | undefined;
  endpointId?: string | undefined;
  /** `503`, `5xx` or the class of an error such as `timeout`. */
  response?: string | undefined;
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
    eventType: await member('eventType', given.eventType, checkEventType),
    endpointId: await member('endpointId', given.endpointId, (id) =>
      checkRowId('The id of the endpoint', id),
    ),
    response: await member('response', given.response, checkResponse),
    sinceMs: since === undefined ? null : checkTime(since, 'since'),
    untilMs: until === undefined ? null : checkTime(until, 'until'),
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

function checkResponse(given: string): WantedResponse {
  const text = given.toLowerCase();
  if (/^[1-5](\d\d|xx)$/.test(text)) {
    const bindings = { lowest: Number(text.replace('xx', '00')), highest: Number(text.replace('xx', '99')) };
    const range = 'a.status_code between cast(:lowest as integer) and cast(:highest as integer)';
    return { text: range, bindings, isFailure: !text.startsWith('2') };
  }
  const errorClass = SEND_ERROR_CLASSES.find((known) => known === text);
  if (errorClass !== undefined)
    return { text: 'a.error_class = :errorClass', bindings: { errorClass }, isFailure: true };
  throw invalidValue(
    `A response is an HTTP code such as 503, a class such as 5xx, or one of ${SEND_ERROR_CLASSES.join(', ')}.`,
  );
}

function checkEventType(name: string): EventType {
  const type = eventTypeNamed(name);
  if (type !== null) return type;
  throw invalidValue(`Choose one of ${EVENT_TYPES.join(', ')}, upstream.<field>.`);
}

function checkId(text: string): string {
  if (text.length <= MAX_ID_CHARS && !text.includes('\0') && text.isWellFormed()) return text;
  throw invalidValue(`An id has 1 to ${MAX_ID_CHARS} characters.`);
}

/** SQL conditions, with what they are bound to. */
type Conditions = { text: string; bindings: Record<string, Binding> };

/** The condition on an attempt `a`, or on whatever has its columns; `isFailure`: an attempt with this response has failed. */
type WantedResponse = Conditions & { isFailure: boolean };

/** Which deliveries to list; null means no restriction. Times are Unix time in ms, `untilMs` is exclusive. */
export type DeliveryFilter = {
  state: DeliveryState | null;
  eventType: EventType | null;
  endpointId: string | null;
  response: WantedResponse | null;
  sinceMs: number | null;
  untilMs: number | null;
};

/**
 * Conditions on a delivery `d`. The type of its event is looked up by the key of each: joined, the planner may read a
 * whole day of events.
 */
export function deliveryConditions({ state, endpointId, eventType }: DeliveryFilter): Conditions {
  const conditions = [
    state === null ? 'true' : 'd.state = :state',
    endpointId === null ? 'true' : 'd.endpoint_id = cast(:endpointId as bigint)',
    eventType === null
      ? 'true'
      : `(select ${typeIsAmong('event_type', 'array[cast(:eventType as text)]')} from events where day = d.event_day and id = d.event_uuid)`,
  ];
  return { text: conditions.join(' and '), bindings: { state, endpointId, eventType } };
}
