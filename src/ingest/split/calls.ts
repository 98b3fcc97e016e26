import { items, type JsonNode, member, stringOf } from '../../platform/json/json-text.ts';
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
