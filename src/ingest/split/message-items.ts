import type { MediaReference } from '../../features/messages/media/media.ts';
import type { CartOrder, OrderEventParts } from '../../features/messages/orders/orders.ts';
import { type JsonNode, member, sourceOf, sourceWithEdits, stringOf } from '../../platform/json/json-text.ts';
import { idOf, rawIdOf, storableId, storableText } from '../../platform/json/storable-text.ts';
import { readCartOrder } from './cart-order.ts';
import {
  contactsOfSender,
  type ItemBase,
  type ItemContext,
  ItemRefused,
  MAX_CHARS,
  type PersonIds,
  readSender,
  type Sender,
  timestampOf,
} from './item-context.ts';
import { mediaUrlRemovals, readMediaReference } from './media-references.ts';

/** A person goes on under new ids: history is kept under both. */
export type IdentityChange = PersonIds & { previousWaId: string | null; previousUserId: string | null };

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
  contextId: string | null;
  targetId: string | null;
  media: MediaReference | null;
  order: CartOrder | null;
  orderEventParts: OrderEventParts | null;
  rawJson: string;
};

/** The change that a message of type `system` reports. Throws OversizedIdError. */
export function readIdentityChange(message: JsonNode, type: string): IdentityChange | null {
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

/** The message that one is about: a reaction, an edit, a deletion. Throws OversizedIdError. */
export function readTargetId(message: JsonNode, type: string): string | null {
  if (type === 'reaction') return idOf(member(member(message, 'reaction'), 'message_id'));
  if (type !== 'edit' && type !== 'revoke') return null;
  return idOf(member(member(message, type), 'original_message_id'));
}

/** The message that one replies to. Throws OversizedIdError. */
export function readContextId(message: JsonNode, type: string): string | null {
  const own = idOf(member(member(message, 'context'), 'id'));
  if (own !== null || type !== 'edit') return own;
  return idOf(member(member(member(member(message, 'edit'), 'message'), 'context'), 'id'));
}

/** Throws ItemRefused and OversizedIdError. */
export function readMessageItem(message: JsonNode, context: ItemContext, path: string): MessageItem {
  const rawId = rawIdOf(member(message, 'id'));
  if (rawId === null) throw new ItemRefused('missing_id');
  const upstreamId = storableId(rawId);
  const type = storableText(stringOf(member(message, 'type')) || 'unknown', MAX_CHARS.type);
  const placeholder = type === 'unsupported' || type === 'unknown';
  const [waId, userId] = [rawIdOf(member(message, 'from')), rawIdOf(member(message, 'from_user_id'))];
  const contacts = contactsOfSender(context, { waId, userId });
  const contactsJson = `[${contacts.map(sourceOf).join(',')}]`;
  const rawJson = sourceWithEdits(message, mediaUrlRemovals(message));
  const { metadataJson, othersJson, owner } = context;
  const order = type === 'order' ? readCartOrder(message) : null;
  return {
    kind: 'message',
    path,
    ...owner,
    dedupKey: JSON.stringify(['message', owner.phoneNumberId, rawId, placeholder ? 'placeholder' : 'real']),
    laneKey: upstreamId,
    eventId: upstreamId,
    eventData: `{"metadata":${metadataJson},"contacts":${contactsJson},"message":${rawJson}${othersJson}}`,
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
