import { type JsonNode, member, sourceOf, sourceWithEdits, stringOf } from '../../platform/json/json-text.ts';
import { idOf, rawIdOf, storableId, storableText } from '../../platform/json/storable-text.ts';
import { type CartOrder, type OrderEventParts, readCartOrder } from '../cart-order.ts';
import { type MediaReference, mediaUrlRemovals, readMediaReference } from '../media-reference.ts';
import { contactsOfSender } from './contact-book.ts';
import { type ItemBase, type ItemContext, ItemRefused } from './item-context.ts';
import { readSender, type Sender } from './sender.ts';
import { timestampOf } from './upstream-timestamp.ts';

const MAX_TYPE_CHARS = 128;

/** A person goes on under new ids: history is kept under both. */
type IdentityChange = {
  previousWaId: string | null;
  previousUserId: string | null;
  waId: string | null;
  userId: string | null;
};

/** An inbound message. */
export type MessageItem = ItemBase & {
  kind: 'message';
  upstreamId: string;
  type: string;
  /** Stands for content that upstream could not give; the real message may follow under the same id. */
  placeholder: boolean;
  sentAt: Date | null;
  sender: Sender;
  groupId: string | null;
  identityChange: IdentityChange | null;
  /** The message this one replies to. */
  contextId: string | null;
  /** The message this one reacts to, edits or revokes. */
  targetId: string | null;
  media: MediaReference | null;
  order: CartOrder | null;
  orderEventParts: OrderEventParts | null;
  /** The upstream message as it is written, without the short-lived media `url`. */
  rawJson: string;
};

function readIdentityChange(message: JsonNode, type: string): IdentityChange | null {
  if (type !== 'system') return null;
  const system = member(message, 'system');
  const change = stringOf(member(system, 'type'));
  if (change !== 'user_changed_number' && change !== 'user_changed_user_id') return null;
  const userId = idOf(member(system, 'user_id'));
  const fromUserId = idOf(member(message, 'from_user_id'));
  return {
    // `from` is the number before the change.
    previousWaId: idOf(member(message, 'from')),
    previousUserId: idOf(member(system, 'previous_user_id')) ?? (fromUserId === userId ? null : fromUserId),
    waId: idOf(member(system, 'wa_id')),
    userId,
  };
}

function readTargetId(message: JsonNode, type: string): string | null {
  if (type === 'reaction') return idOf(member(member(message, 'reaction'), 'message_id'));
  if (type !== 'edit' && type !== 'revoke') return null;
  return idOf(member(member(message, type), 'original_message_id'));
}

function readContextId(message: JsonNode, type: string): string | null {
  const own = idOf(member(member(message, 'context'), 'id'));
  if (own !== null || type !== 'edit') return own;
  return idOf(member(member(member(member(message, 'edit'), 'message'), 'context'), 'id'));
}

/** Turns one `messages[]` entry into an item. Throws ItemRefused and OversizedIdError. */
export function readMessageItem(message: JsonNode, context: ItemContext, path: string): MessageItem {
  const rawId = rawIdOf(member(message, 'id'));
  if (rawId === null) throw new ItemRefused('missing_id');
  const upstreamId = storableId(rawId);
  const type = storableText(stringOf(member(message, 'type')) || 'unknown', MAX_TYPE_CHARS);
  const placeholder = type === 'unsupported' || type === 'unknown';
  const contacts = contactsOfSender(
    context.contacts,
    rawIdOf(member(message, 'from')),
    rawIdOf(member(message, 'from_user_id')),
  );
  const contactsJson = `[${contacts.map(sourceOf).join(',')}]`;
  const rawJson = sourceWithEdits(message, mediaUrlRemovals(message));
  const { metadataJson } = context;
  const order = type === 'order' ? readCartOrder(message) : null;
  return {
    kind: 'message',
    path,
    wabaId: context.wabaId,
    phoneNumberId: context.phoneNumberId,
    displayPhoneNumber: context.displayPhoneNumber,
    dedupKey: JSON.stringify(['message', context.phoneNumberId, rawId, placeholder ? 'placeholder' : 'real']),
    laneKey: upstreamId,
    eventId: upstreamId,
    eventData: `{"metadata":${metadataJson},"contacts":${contactsJson},"message":${rawJson}}`,
    upstreamId,
    type,
    placeholder,
    sentAt: timestampOf(member(message, 'timestamp')),
    sender: readSender(message, contacts),
    groupId: idOf(member(message, 'group_id')),
    identityChange: readIdentityChange(message, type),
    contextId: readContextId(message, type),
    targetId: readTargetId(message, type),
    media: readMediaReference(message),
    order,
    orderEventParts: order && {
      eventId: order.catalogId ?? upstreamId,
      metadataJson,
      contactsJson,
      orderJson: order.cartJson,
    },
    rawJson,
  };
}
