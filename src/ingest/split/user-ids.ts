import { items, type JsonNode, member } from '../../platform/json/json-text.ts';
import { boundedIdOf } from '../../platform/json/storable-text.ts';
import { waIdOf } from './item-context.ts';
import type { IdentityChange } from './message-items.ts';

/**
 * The other user ids in a value of the field `user_id_update`: the form is after business-scoped-user-ids below
 * developers.facebook.com/documentation/business-messaging/whatsapp. A message of the type `system` says the same.
 */
export function readUserIds(value: JsonNode): IdentityChange[] {
  return items(member(value, 'user_id_update')).flatMap((entry) => {
    const ids = member(entry, 'user_id');
    const [previousUserId, userId] = [
      boundedIdOf(member(ids, 'previous')),
      boundedIdOf(member(ids, 'current')),
    ];
    if (previousUserId === null || userId === null) return [];
    const phone = boundedIdOf(member(entry, 'wa_id'));
    const waId = phone === null ? null : waIdOf(phone);
    return [{ previousUserId, userId, previousWaId: waId, waId }];
  });
}
