import { jsonNumberText } from '../../platform/decimal.ts';
import {
  items,
  type JsonNode,
  JsonSyntaxError,
  member,
  memberRemovals,
  members,
  parseJson,
  sourceOf,
  sourceWithEdits,
  stringOf,
  type TextEdit,
  textOf,
} from '../../platform/json/json-text.ts';
import { boundedIdOf, idOf, rawIdOf, shortTextOf, storableText } from '../../platform/json/storable-text.ts';
import {
  type ItemBase,
  type ItemContext,
  ItemRefused,
  type OwnerIds,
  phoneNumberIdOf,
  type QuarantineReason,
  readItemContext,
  wabaIdOf,
} from './item-context.ts';
import { type MessageItem, readMessageItem } from './message-item.ts';
import { readStatusItem, type StatusItem } from './status-item.ts';

const MAX_FIELD_CHARS = 128;

/** One thing that upstream reports and that becomes an event. */
export type UpstreamItem = MessageItem | StatusItem | PaymentItem;

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

function readItem(
  list: 'messages' | 'statuses',
  node: JsonNode,
  context: ItemContext,
  path: string,
): UpstreamItem {
  if (node.kind !== 'object') throw new ItemRefused('unreadable_item');
  if (node.tooDeep) throw new ItemRefused('too_deep');
  if (list === 'messages') return readMessageItem(node, context, path);
  return isPaymentEntry(node) ? readPaymentItem(node, context, path) : readStatusItem(node, context, path);
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
  if (listNode.kind !== 'array') {
    quarantine(split, change, listPath, 'unreadable_item');
    return;
  }
  items(listNode).forEach((node, position) => {
    const path = `${listPath}[${position}]`;
    if (typeof context === 'string') {
      quarantine(split, change, path, context);
      return;
    }
    try {
      split.items.push(readItem(list, node, context, path));
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

function splitChange(split: SplitBody, wabaId: string | null, node: JsonNode, path: string): void {
  const field = stringOf(member(node, 'field'));
  const value = member(node, 'value');
  const storableField = field === null ? null : storableText(field, MAX_FIELD_CHARS);
  const owner = { wabaId, phoneNumberId: phoneNumberIdOf(value) };
  const change: Change = { owner, value, field: storableField, path };
  if (node.kind !== 'object') quarantine(split, change, path, 'unreadable_item');
  else if (field === 'smb_message_echoes') quarantine(split, change, path, 'message_echo');
  else if (field !== 'messages') quarantine(split, change, path, 'unknown_field');
  else if (value?.kind !== 'object') quarantine(split, change, `${path}.value`, 'unreadable_item');
  else splitMessagesChange(split, change, value);
}

/** The document that a body is. Throws UnreadableBody. */
export function readUpstreamRoot(body: Uint8Array): JsonNode {
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
    const wabaId = wabaIdOf(entry);
    const changes = member(entry, 'changes');
    if (changes?.kind !== 'array') {
      split.quarantined.push({ path, reason: 'unreadable_item', field: null, wabaId, phoneNumberId: null });
      return;
    }
    items(changes).forEach((change, position) => {
      splitChange(split, wabaId, change, `${path}.changes[${position}]`);
    });
  });
  return split;
}

const MAX_STATUS_CHARS = 128;
/** No message has this status. */
const PAYMENT_STATUS = 'captured';
const ID_NAME = /^(?:.*_)?id$/;

/** A payment update. Only a hint: whoever needs certainty looks the payment up. */
export type PaymentItem = ItemBase & {
  kind: 'payment';
  referenceId: string | null;
  status: string | null;
  transactionId: string | null;
  /** The customer; null for what upstream does not say. */
  recipient: { waId: string | null; userId: string | null };
};

/** Whether a `statuses[]` entry is about a payment and not about a message: it says so, or has a `payment`. */
function isPaymentEntry(entry: JsonNode): boolean {
  if (stringOf(member(entry, 'type')) === 'payment') return true;
  if ((member(entry, 'payment')?.kind ?? 'null') !== 'null') return true;
  return stringOf(member(entry, 'status')) === PAYMENT_STATUS;
}

/** A string as it is written, a number as a string; null for what is neither. */
function stringJsonOf(node: JsonNode | null): string | null {
  if (node?.kind === 'string') return sourceOf(node);
  return node?.kind === 'number' ? JSON.stringify(sourceOf(node)) : null;
}

/** `amount` with `value` and `offset` as numbers: digits in a string lose the quotes, what is no number goes. */
function amountJsonOf(amount: JsonNode | null): string | null {
  if (amount?.kind !== 'object') return null;
  const edits: TextEdit[] = [];
  const removedNames: string[] = [];
  for (const name of ['value', 'offset']) {
    const node = member(amount, name);
    if (node === null || node.kind === 'number') continue;
    const number = jsonNumberText(stringOf(node) ?? '');
    if (number === null) removedNames.push(name);
    else edits.push({ start: node.start, end: node.end, text: number });
  }
  return sourceWithEdits(amount, [...edits, ...memberRemovals(amount, removedNames)]);
}

/** The edits that quote numeric ids, at any depth, as they are written: a reader's numbers would not hold them. */
function idQuotes(node: JsonNode): TextEdit[] {
  if (node.kind === 'array') return items(node).flatMap(idQuotes);
  return members(node).flatMap(({ name, value }) => {
    if (value.kind !== 'number') return idQuotes(value);
    const { start, end } = value;
    return ID_NAME.test(stringOf(name) ?? '') ? [{ start, end, text: JSON.stringify(sourceOf(value)) }] : [];
  });
}

function transactionJsonOf(transaction: JsonNode | null): string | null {
  if (transaction === null || transaction.kind === 'null') return null;
  return sourceWithEdits(transaction, idQuotes(transaction));
}

function dedupKeyOf(entry: JsonNode, context: ItemContext): string {
  const payment = member(entry, 'payment');
  const transaction = member(payment, 'transaction');
  const referenceId = rawIdOf(member(payment, 'reference_id'));
  const refunds = [...items(member(payment, 'refunds')), ...items(member(transaction, 'refunds'))];
  return JSON.stringify([
    'payment',
    context.phoneNumberId,
    referenceId,
    textOf(member(entry, 'status')),
    textOf(member(transaction, 'id')),
    textOf(member(transaction, 'status')),
    textOf(member(transaction, 'updated_timestamp')),
    refunds.map((refund) => [textOf(member(refund, 'id')), textOf(member(refund, 'status'))]),
    // Without a reference different payments would look alike, so only the same object counts as the same.
    referenceId === null ? sourceOf(entry) : null,
  ]);
}

function eventDataOf(entry: JsonNode, context: ItemContext): string {
  const payment = member(entry, 'payment');
  const transaction = member(payment, 'transaction');
  const parts: [string, string | null][] = [
    ['metadata', context.metadataJson],
    ['reference_id', stringJsonOf(member(payment, 'reference_id'))],
    ['status', stringJsonOf(member(entry, 'status'))],
    ['amount', amountJsonOf(member(payment, 'amount'))],
    ['currency', stringJsonOf(member(payment, 'currency'))],
    ['transaction', transactionJsonOf(transaction)],
    ['recipient_id', stringJsonOf(member(entry, 'recipient_id'))],
    ['timestamp', stringJsonOf(member(entry, 'timestamp'))],
    ['raw', sourceOf(entry)],
  ];
  const present = parts.filter(([, json]) => json !== null);
  return `{${present.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
}

/** Turns one `statuses[]` entry about a payment into an item. Throws OversizedIdError. */
function readPaymentItem(entry: JsonNode, context: ItemContext, path: string): PaymentItem {
  const payment = member(entry, 'payment');
  const referenceId = idOf(member(payment, 'reference_id'));
  const transactionId = idOf(member(member(payment, 'transaction'), 'id'));
  const status = shortTextOf(member(entry, 'status'), MAX_STATUS_CHARS);
  const eventId = `payment:${referenceId ?? ''}:${transactionId ?? ''}:${status ?? ''}`;
  return {
    kind: 'payment',
    path,
    wabaId: context.wabaId,
    phoneNumberId: context.phoneNumberId,
    displayPhoneNumber: context.displayPhoneNumber,
    dedupKey: dedupKeyOf(entry, context),
    laneKey: referenceId ?? eventId,
    eventId,
    eventData: eventDataOf(entry, context),
    referenceId,
    status,
    transactionId,
    recipient: {
      waId: boundedIdOf(member(entry, 'recipient_id')),
      userId: boundedIdOf(member(entry, 'recipient_user_id')),
    },
  };
}
