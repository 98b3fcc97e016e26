import type { CallFacts } from '../../features/messages/calls.ts';
import { items, type JsonNode, member, stringOf, textOf } from '../../platform/json/json-text.ts';
import { boundedIdOf } from '../../platform/json/storable-text.ts';
import { type PersonIds, timestampOf, waIdOf } from './item-context.ts';

export type Call = PersonIds & { at: Date };

/**
 * The calls that a value of the field `calls` reports and that open the window: those of customers, whether they are
 * accepted or not, when they begin, and those of the business when they are accepted. That and the form are after
 * calling/pricing, calling/user-initiated-calls and calling/business-initiated-calls below
 * developers.facebook.com/documentation/business-messaging/whatsapp.
 */
export function readCalls(value: JsonNode): Call[] {
  const business = boundedIdOf(member(member(value, 'metadata'), 'display_phone_number'));
  const begun = items(member(value, 'calls'))
    .filter((call) => stringOf(member(call, 'event')) === 'connect' && isOfCustomer(call, business))
    .map((call) => callOf(call, 'from', 'from_user_id'));
  const accepted = items(member(value, 'statuses'))
    .filter((status) => stringOf(member(status, 'status')) === 'ACCEPTED')
    .map((status) => callOf(status, 'recipient_id', 'recipient_user_id'));
  return [...begun, ...accepted].flatMap((call) => call ?? []);
}

/** Examples of upstream leave the direction out: then it is the customer's unless it is from our number. */
function isOfCustomer(call: JsonNode, business: string | null): boolean {
  const direction = stringOf(member(call, 'direction'));
  if (direction !== null) return direction === 'USER_INITIATED';
  return boundedIdOf(member(call, 'from')) !== business;
}

function callOf(call: JsonNode, phone: string, user: string): Call | null {
  const at = timestampOf(member(call, 'timestamp'));
  const [named, userId] = [boundedIdOf(member(call, phone)), boundedIdOf(member(call, user))];
  const waId = named === null ? null : waIdOf(named);
  return at === null || (waId === null && userId === null) ? null : { waId, userId, at };
}

type CallItem = PersonIds & CallFacts & { callId: string };

/**
 * Reads the reports of a value of the field `calls`, each of which names its customer: beginnings, ends and statuses. Samples of
 * upstream have `from` and `to` the wrong way round, so the customer is whichever is not the business.
 */
export function readCallItems(value: JsonNode): CallItem[] {
  const business = boundedIdOf(member(member(value, 'metadata'), 'display_phone_number'));
  const errorCode = numberIn(items(member(value, 'errors'))[0] ?? null, 'code');
  const calls = items(member(value, 'calls')).flatMap((call) => {
    const callId = boundedIdOf(member(call, 'id'));
    const state = stateOfEvent(call);
    const person = personOf(call, business);
    if (callId === null || state === null || person === null) return [];
    const isEnd = stringOf(member(call, 'event')) === 'terminate';
    return [
      {
        ...person,
        callId,
        state,
        direction: isOfCustomer(call, business) ? ('inbound' as const) : ('outbound' as const),
        at: isEnd ? null : timestampOf(member(call, 'timestamp')),
        startedAt: timestampOf(member(call, 'start_time')),
        endedAt:
          timestampOf(member(call, 'end_time')) ?? (isEnd ? timestampOf(member(call, 'timestamp')) : null),
        durationSeconds: numberIn(call, 'duration'),
        errorCode: isEnd ? errorCode : null,
      },
    ];
  });
  const statuses = items(member(value, 'statuses')).flatMap((status) => {
    const callId = boundedIdOf(member(status, 'id'));
    const state = STATES[stringOf(member(status, 'status'))?.toUpperCase() ?? ''];
    const person = callOf(status, 'recipient_id', 'recipient_user_id');
    if (callId === null || state === undefined || person === null) return [];
    const { waId, userId } = person;
    const at = timestampOf(member(status, 'timestamp'));
    return [{ ...NOTHING, waId, userId, callId, state, at, direction: 'outbound' as const }];
  });
  return [...calls, ...statuses];
}

const NOTHING = { at: null, startedAt: null, endedAt: null, durationSeconds: null, errorCode: null };

const STATES: Readonly<Record<string, CallFacts['state']>> = {
  RINGING: 'ringing',
  ACCEPTED: 'accepted',
  REJECTED: 'rejected',
  COMPLETED: 'completed',
  FAILED: 'failed',
};

/** Null: it says nothing of how the call went, as that a recording is there. */
function stateOfEvent(call: JsonNode): CallFacts['state'] | null {
  const event = stringOf(member(call, 'event'));
  if (event === 'connect' || event === 'call_created') return 'ringing';
  if (event !== 'terminate') return null;
  const named = STATES[stringOf(member(call, 'status'))?.toUpperCase() ?? ''];
  return named ?? (numberIn(call, 'duration') === null ? 'failed' : 'completed');
}

function personOf(call: JsonNode, business: string | null): PersonIds | null {
  const phones = ['from', 'to'].flatMap((name) => boundedIdOf(member(call, name)) ?? []);
  const phone = phones.find((one) => one !== business);
  const userId = boundedIdOf(member(call, 'from_user_id')) ?? boundedIdOf(member(call, 'to_user_id'));
  const waId = phone === undefined ? null : waIdOf(phone);
  return waId === null && userId === null ? null : { waId, userId };
}

/** A whole number that upstream also writes as a text. */
function numberIn(node: JsonNode | null, name: string): number | null {
  const text = textOf(member(node, name));
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : null;
}
