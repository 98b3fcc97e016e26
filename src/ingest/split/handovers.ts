import { type JsonNode, member, stringOf } from '../../platform/json/json-text.ts';
import { boundedIdOf, shortTextOf } from '../../platform/json/storable-text.ts';
import { type PersonIds, timestampOf, waIdOf } from './item-context.ts';

/** Who has a conversation from a time on. */
export type Handover = PersonIds & { owner: 'us' | 'other' | 'unknown'; role: string | null; at: Date };

const OWNERS = { control_passed: 'us', control_taken: 'other' } as const;
const MAX_ROLE_CHARS = 64;

/**
 * The handover that a value of the field `messaging_handovers` reports: upstream tells the new owner that control was
 * passed, and the former one that it was taken. Null where it does not say of whom: whose conversation it is, is not
 * guessed. The form is after webhooks/reference/messaging-handovers below
 * developers.facebook.com/documentation/business-messaging/whatsapp; older bodies have no `type`.
 */
export function readHandover(value: JsonNode): Handover | null {
  const sender = member(value, 'sender');
  const [phone, userId] = [
    boundedIdOf(member(sender, 'phone_number')) ?? boundedIdOf(member(sender, 'wa_id')),
    boundedIdOf(member(sender, 'user_id')),
  ];
  const at = timestampOf(member(value, 'timestamp'));
  if (at === null || (phone === null && userId === null)) return null;
  const type =
    stringOf(member(value, 'type')) ?? Object.keys(OWNERS).find((name) => member(value, name) !== null);
  const owner = type === 'control_passed' || type === 'control_taken' ? OWNERS[type] : 'unknown';
  const role = shortTextOf(member(member(value, type ?? ''), 'new_owner_role'), MAX_ROLE_CHARS);
  return { waId: phone === null ? null : waIdOf(phone), userId, owner, role, at };
}
