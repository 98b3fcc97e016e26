import { JsonSyntaxError } from '../../platform/json/json-scan.ts';
import { items, type JsonNode, member, parseJson, stringOf } from '../../platform/json/json-text.ts';
import { storableText } from '../../platform/json/storable-text.ts';
import { type FieldItem, readFieldItem } from './field-items.ts';
import {
  type ItemContext,
  ItemRefused,
  isErased,
  MAX_CHARS,
  type OwnerIds,
  phoneNumberIdOf,
  type QuarantineReason,
  readItemContext,
  wabaIdOf,
} from './item-context.ts';
import { type MessageItem, readMessageItem } from './message-items.ts';
import { type PaymentItem, readStatusOrPayment, type StatusItem } from './status-items.ts';
import { hasItems, readOtherMembers, withoutItems } from './value-members.ts';

export type NumberItem = MessageItem | StatusItem | PaymentItem;

export type UpstreamItem = NumberItem | FieldItem;

export type Owned<Item extends UpstreamItem = UpstreamItem> = {
  item: Item;
  wabaId: string;
  tenantId: string;
  /** The customer wrote one of the tenant's words alone. */
  wish?: 'stop' | 'resume';
};

/** A part of a body that becomes no event: kept, counted, and never an error for its siblings. */
export type QuarantinedPart = {
  path: string;
  reason: QuarantineReason;
  field: string | null;
  wabaId: string | null;
  phoneNumberId: string | null;
};

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

function splitMessagesChange(split: SplitBody, change: Change, value: JsonNode, time: JsonNode | null): void {
  const [itemsBefore, refusedBefore] = [split.items.length, split.quarantined.length];
  const others = readOtherMembers(value);
  const context = readItemContext(change.owner, value, others);
  splitList(split, change, 'messages', context);
  splitList(split, change, 'statuses', context);
  const [isAnyAdded, isAnyRefused] = [
    split.items.length > itemsBefore,
    split.quarantined.length > refusedBefore,
  ];
  const isLeft = isAnyAdded ? !others.isAll : isAnyRefused && !(others.json === null && others.isAll);
  if (isLeft) splitField(split, { ...change, value: withoutItems(value) }, time);
  else if (!isAnyAdded && !isAnyRefused && !hasItems(value)) splitField(split, change, time);
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
  const owner = { wabaId, phoneNumberId: phoneNumberIdOf(value, field) };
  const change: Change = { owner, value, field: storableField, path };
  if (node.kind !== 'object') quarantine(split, change, path, 'unreadable_item');
  else if (field !== 'messages') splitField(split, change, time);
  else if (value?.kind !== 'object') quarantine(split, change, `${path}.value`, 'unreadable_item');
  else splitMessagesChange(split, change, value, time);
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
