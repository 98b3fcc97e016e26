import type { MediaReference } from '../../messages/media/media.ts';
import type { CartOrder, OrderEventParts } from '../../messages/orders/orders.ts';
import { JsonSyntaxError } from '../../platform/json/json-scan.ts';
import {
  items,
  type JsonNode,
  member,
  members,
  parseJson,
  sourceOf,
  sourceWithEdits,
  stringOf,
  type TextEdit,
} from '../../platform/json/json-text.ts';
import { idOf, rawIdOf, shortTextOf, storableId, storableText } from '../../platform/json/storable-text.ts';
import { readCartOrder } from './cart-order.ts';
import { type FieldItem, readFieldItem } from './field-items.ts';
import {
  contactsOfSender,
  type ItemBase,
  type ItemContext,
  ItemRefused,
  isErased,
  memberRemovals,
  type OwnerIds,
  type PersonIds,
  phoneNumberIdOf,
  type QuarantineReason,
  readItemContext,
  readSender,
  type Sender,
  timestampOf,
  wabaIdOf,
} from './item-context.ts';
import { type PaymentItem, readStatusOrPayment, type StatusItem } from './status-items.ts';

/** How much is kept of texts, in UTF-16 units. */
const MAX_CHARS = {
  ...{ field: 128, type: 128 },
  ...{ mimeType: 256, sha256: 128, url: 4096, caption: 4096, fileName: 512, mediaError: 512 },
};

/** An item of the field `messages`: of one number, and mostly about one customer. */
export type NumberItem = MessageItem | StatusItem | PaymentItem;

/** One thing that upstream reports and that becomes an event. */
export type UpstreamItem = NumberItem | FieldItem;

/** An upstream item whose phone number or WABA is ours, with the WABA and tenant it belongs to. */
export type Owned<Item extends UpstreamItem = UpstreamItem> = {
  item: Item;
  wabaId: string;
  tenantId: string;
};

/** A part of a body that becomes no event: kept, counted, and never an error for its siblings. */
export type QuarantinedPart = {
  path: string;
  reason: QuarantineReason;
  field: string | null;
  wabaId: string | null;
  phoneNumberId: string | null;
};

/** An upstream body in parts, in the order of the body. */
export type SplitBody = { items: UpstreamItem[]; quarantined: QuarantinedPart[] };

/** The whole body cannot be read: it is not JSON, no object, or has no `entry` array. */
export class UnreadableBody extends Error {
  readonly reason: 'not_json' | 'not_an_object' | 'no_entry_array';

  constructor(reason: UnreadableBody['reason'], detail: string) {
    super(detail);
    this.name = 'UnreadableBody';
    this.reason = reason;
  }
}

/** A change while it is being split. */
type Change = { owner: OwnerIds; value: JsonNode | null; field: string | null; path: string };

function isPresent(node: JsonNode | null): node is JsonNode {
  return node !== null && node.kind !== 'null';
}

function quarantine(split: SplitBody, change: Change, path: string, reason: QuarantineReason): void {
  split.quarantined.push({ path, reason, field: change.field, ...change.owner });
}

function splitList(
  split: SplitBody,
  change: Change,
  list: 'messages' | 'statuses',
  context: ItemContext | QuarantineReason,
): void {
  const listNode = member(change.value, list);
  if (!isPresent(listNode)) return;
  const listPath = `${change.path}.value.${list}`;
  if (listNode.kind !== 'array') quarantine(split, change, listPath, 'unreadable_item');
  items(listNode).forEach((node, position) => {
    const path = `${listPath}[${position}]`;
    if (isErased(node)) return;
    if (typeof context === 'string') {
      quarantine(split, change, path, context);
      return;
    }
    try {
      if (node.kind !== 'object') throw new ItemRefused('unreadable_item');
      if (node.tooDeep) throw new ItemRefused('too_deep');
      const read = list === 'messages' ? readMessageItem : readStatusOrPayment;
      split.items.push(read(node, context, path));
    } catch (error) {
      // Whatever is wrong with one item, even a mistake of ours, must not stop the others in the body.
      quarantine(split, change, path, error instanceof ItemRefused ? error.reason : 'unreadable_item');
    }
  });
}

function splitMessagesChange(split: SplitBody, change: Change, value: JsonNode): void {
  const before = split.items.length + split.quarantined.length;
  const context = readItemContext(change.owner, value);
  splitList(split, change, 'messages', context);
  splitList(split, change, 'statuses', context);
  if (isPresent(member(value, 'message_echoes'))) {
    quarantine(split, change, `${change.path}.value.message_echoes`, 'message_echo');
  }
  const errors = member(value, 'errors');
  if (isPresent(errors) && (errors.kind !== 'array' || items(errors).length > 0)) {
    quarantine(split, change, `${change.path}.value.errors`, 'value_errors');
  }
  if (split.items.length + split.quarantined.length === before) {
    quarantine(split, change, `${change.path}.value`, 'no_items');
  }
}

function splitField(split: SplitBody, change: Change, time: JsonNode | null): void {
  try {
    split.items.push(readFieldItem(change, time));
  } catch (error) {
    const reason = error instanceof ItemRefused ? error.reason : 'unreadable_item';
    quarantine(split, change, change.path, reason);
  }
}

function splitChange(
  split: SplitBody,
  { wabaId, time }: { wabaId: string | null; time: JsonNode | null },
  node: JsonNode,
  path: string,
): void {
  if (isErased(node)) return;
  const field = stringOf(member(node, 'field'));
  const value = member(node, 'value');
  const storableField = field === null ? null : storableText(field, MAX_CHARS.field);
  const owner = { wabaId, phoneNumberId: phoneNumberIdOf(value) };
  const change: Change = { owner, value, field: storableField, path };
  if (node.kind !== 'object') quarantine(split, change, path, 'unreadable_item');
  else if (field !== 'messages') splitField(split, change, time);
  else if (value?.kind !== 'object') quarantine(split, change, `${path}.value`, 'unreadable_item');
  else splitMessagesChange(split, change, value);
}

/** The document that a body is; null when it is no JSON. */
export function upstreamRootOf(body: Uint8Array): JsonNode | null {
  try {
    return readUpstreamRoot(body);
  } catch (error) {
    if (error instanceof UnreadableBody) return null;
    throw error;
  }
}

function readUpstreamRoot(body: Uint8Array): JsonNode {
  // Invalid bytes become U+FFFD and a byte order mark goes: one bad character must not cost a whole body.
  const text = new TextDecoder('utf-8').decode(body);
  try {
    return parseJson(text, { deepNodes: 'mark' });
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw new UnreadableBody('not_json', error.message);
    throw error;
  }
}

/**
 * Splits the body of an upstream webhook into its items. What is passed on to tenants are slices of the body's text,
 * so that numbers, escapes, member order and unknown members stay as upstream wrote them. One bad part never harms
 * another: it is quarantined. Throws UnreadableBody when the body as a whole cannot be read.
 */
export function splitUpstreamBody(body: Uint8Array): SplitBody {
  const root = readUpstreamRoot(body);
  if (root.kind !== 'object') throw new UnreadableBody('not_an_object', `the body is of kind ${root.kind}`);
  const entries = member(root, 'entry');
  if (entries?.kind !== 'array') throw new UnreadableBody('no_entry_array', 'the body has no entry array');
  const split: SplitBody = { items: [], quarantined: [] };
  items(entries).forEach((entry, entryPosition) => {
    const path = `entry[${entryPosition}]`;
    const [wabaId, time] = [wabaIdOf(entry), member(entry, 'time')];
    const changes = member(entry, 'changes');
    if (changes?.kind !== 'array') {
      split.quarantined.push({ path, reason: 'unreadable_item', field: null, wabaId, phoneNumberId: null });
      return;
    }
    items(changes).forEach((change, position) => {
      splitChange(split, { wabaId, time }, change, `${path}.changes[${position}]`);
    });
  });
  return split;
}

/** A person goes on under new ids: history is kept under both. */
export type IdentityChange = PersonIds & { previousWaId: string | null; previousUserId: string | null };

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

/** The change that a message of type `system` tells of. Throws OversizedIdError. */
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
function readMessageItem(message: JsonNode, context: ItemContext, path: string): MessageItem {
  const rawId = rawIdOf(member(message, 'id'));
  if (rawId === null) throw new ItemRefused('missing_id');
  const upstreamId = storableId(rawId);
  const type = storableText(stringOf(member(message, 'type')) || 'unknown', MAX_CHARS.type);
  const placeholder = type === 'unsupported' || type === 'unknown';
  const [waId, userId] = [rawIdOf(member(message, 'from')), rawIdOf(member(message, 'from_user_id'))];
  const contacts = contactsOfSender(context, { waId, userId });
  const contactsJson = `[${contacts.map(sourceOf).join(',')}]`;
  const rawJson = sourceWithEdits(message, mediaUrlRemovals(message));
  const { metadataJson, owner } = context;
  const order = type === 'order' ? readCartOrder(message) : null;
  return {
    kind: 'message',
    path,
    ...owner,
    dedupKey: JSON.stringify(['message', owner.phoneNumberId, rawId, placeholder ? 'placeholder' : 'real']),
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

const MEDIA_TYPES = new Set(['image', 'video', 'audio', 'voice', 'document', 'sticker']);
/** Upstream could not fetch what the customer sent. */
const MEDIA_DOWNLOAD_ERROR = '131052';

function isMediaObject(type: string, node: JsonNode | null): node is JsonNode {
  if (node?.kind !== 'object') return false;
  return (
    MEDIA_TYPES.has(type) || (member(node, 'id') !== null && stringOf(member(node, 'mime_type')) !== null)
  );
}

function readUrl(media: JsonNode): string | null {
  const url = stringOf(member(media, 'url'));
  // A cut address leads nowhere; without one the media id is looked up.
  return url !== null && url.length > MAX_CHARS.url ? null : shortTextOf(member(media, 'url'), MAX_CHARS.url);
}

/** The first of upstream's `errors`: the code and a text. */
function readError(holder: JsonNode | null): { code: string | null; text: string | null } {
  const [error = null] = items(member(holder, 'errors'));
  const textIn = (name: string) => shortTextOf(member(error, name), MAX_CHARS.mediaError);
  const code = shortTextOf(member(error, 'code'), MAX_CHARS.type);
  const text = [code, textIn('message') ?? textIn('title')].filter((part) => part !== null).join(' ');
  return { code, text: text || null };
}

/** Media that the customer sent and that upstream has no id of; it says so by `errors`, or as an unsupported type. */
function readMissingMedia(message: JsonNode, type: string, content: JsonNode | null): MediaReference | null {
  const ofMessage = readError(message);
  const isUnsupported = type === 'unsupported' && ofMessage.code === MEDIA_DOWNLOAD_ERROR;
  if (!isUnsupported && !MEDIA_TYPES.has(type)) return null;
  const sentType = isUnsupported ? (stringOf(member(content, 'type')) ?? type) : type;
  return {
    ...describeMedia(sentType, content),
    url: null,
    upstreamMediaId: null,
    upstreamError: ofMessage.text ?? readError(content).text,
  };
}

function describeMedia(type: string, content: JsonNode | null) {
  return {
    mediaType: storableText(type, MAX_CHARS.type),
    mimeType: shortTextOf(member(content, 'mime_type'), MAX_CHARS.mimeType),
    sha256: shortTextOf(member(content, 'sha256'), MAX_CHARS.sha256),
    url: content === null ? null : readUrl(content),
    caption: shortTextOf(member(content, 'caption'), MAX_CHARS.caption),
    fileName: shortTextOf(member(content, 'filename'), MAX_CHARS.fileName),
  };
}

/** The media of a message, also of one that an `edit` carries; null when there is none. Throws OversizedIdError. */
export function readMediaReference(message: JsonNode): MediaReference | null {
  const type = stringOf(member(message, 'type'));
  if (type === null) return null;
  const content = member(message, type);
  if (type === 'edit') {
    const edited = member(content, 'message');
    // One level only: an edit does not carry another edit.
    return edited === null || stringOf(member(edited, 'type')) === 'edit' ? null : readMediaReference(edited);
  }
  const upstreamMediaId = isMediaObject(type, content) ? idOf(member(content, 'id')) : null;
  if (upstreamMediaId === null) return readMissingMedia(message, type, content);
  return { ...describeMedia(type, content), upstreamMediaId, upstreamError: null };
}

/** The edits that take the short-lived media `url` out of a message, and out of a message inside its `edit`. */
/** The short-lived addresses of a message's files. */
export function mediaUrlRemovals(message: JsonNode): TextEdit[] {
  const type = stringOf(member(message, 'type'));
  if (type === null) return [];
  // All members of that name, because a receiver may read another repetition than we do.
  const contents = members(message)
    .filter(({ name }) => stringOf(name) === type)
    .map(({ value }) => value);
  const urlIn = (content: JsonNode) => (isMediaObject(type, content) ? memberRemovals(content, ['url']) : []);
  if (type !== 'edit') return contents.flatMap(urlIn);
  return contents
    .flatMap((content) => members(content))
    .filter(({ name, value }) => stringOf(name) === 'message' && stringOf(member(value, 'type')) !== 'edit')
    .flatMap(({ value }) => mediaUrlRemovals(value));
}
