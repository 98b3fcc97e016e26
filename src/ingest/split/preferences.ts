import { items, type JsonNode, member, parseJson, stringOf, textOf } from '../../platform/json/json-text.ts';
import { boundedIdOf } from '../../platform/json/storable-text.ts';
import { type PersonIds, timestampOf, waIdOf } from './item-context.ts';
import type { StatusItem } from './status-items.ts';

export type Preference = PersonIds & { isStop: boolean; at: Date | null };

const CATEGORY = 'marketing_messages';

const OPTED_OUT_CODE = '131050';

/**
 * The wishes about marketing in a value of the field `user_preferences`; the form is after
 * webhooks/reference/user_preferences below developers.facebook.com/documentation/business-messaging/whatsapp. An entry
 * without ids is about the only customer that the value names.
 */
export function readPreferences(value: JsonNode): Preference[] {
  const contacts = items(member(value, 'contacts'));
  const sole = contacts.length === 1 ? (contacts[0] ?? null) : null;
  return items(member(value, 'user_preferences')).flatMap((entry) => {
    const said = stringOf(member(entry, 'value'));
    if (stringOf(member(entry, 'category')) !== CATEGORY || (said !== 'stop' && said !== 'resume')) return [];
    const own = idsIn(entry);
    const person = own.waId === null && own.userId === null ? idsIn(sole) : own;
    if (person.waId === null && person.userId === null) return [];
    return [{ ...person, isStop: said === 'stop', at: timestampOf(member(entry, 'timestamp')) }];
  });
}

function idsIn(node: JsonNode | null): PersonIds {
  const phone = boundedIdOf(member(node, 'wa_id'));
  return { waId: phone === null ? null : waIdOf(phone), userId: boundedIdOf(member(node, 'user_id')) };
}

/** Whether upstream did not deliver a message because the customer wants no marketing. */
export function isOptedOut({ errorsJson }: Pick<StatusItem, 'errorsJson'>): boolean {
  if (errorsJson?.includes(OPTED_OUT_CODE) !== true) return false;
  return items(parseJson(errorsJson)).some((error) => textOf(member(error, 'code')) === OPTED_OUT_CODE);
}
