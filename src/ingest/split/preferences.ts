import { items, type JsonNode, member, stringOf } from '../../platform/json/json-text.ts';
import { boundedIdOf } from '../../platform/json/storable-text.ts';
import { type PersonIds, timestampOf, waIdOf } from './item-context.ts';

export type Preference = PersonIds & { isStop: boolean; at: Date | null };

const CATEGORY = 'marketing_messages';

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
