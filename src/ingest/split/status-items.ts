import { jsonNumberText } from '../../platform/decimal.ts';
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
  textOf,
} from '../../platform/json/json-text.ts';
import {
  boundedIdOf,
  idOf,
  rawIdOf,
  shortTextOf,
  storableId,
  storableText,
} from '../../platform/json/storable-text.ts';
import {
  contactsOfRecipient,
  type ItemBase,
  type ItemContext,
  ItemRefused,
  readRecipient,
  type Spelled,
  timestampOf,
  waIdOf,
} from './item-context.ts';
import { memberRemovals } from './member-removals.ts';

const MAX_STATUS_CHARS = 128;

export type StatusItem = ItemBase & {
  kind: 'status';
  upstreamId: string;
  status: string;
  /** The group member it is about; upstream sends one status object per member under one id. */
  participant: string | null;
  at: Date | null;
  recipient: Spelled;
  /** The group that the message went to; null when it went to one person. */
  groupId: string | null;
  errorsJson: string | null;
  rawJson: string;
};

/** Turns one `statuses[]` entry into an item: a payment, or a status of a message. Throws ItemRefused and OversizedIdError. */
export function readStatusOrPayment(
  entry: JsonNode,
  context: ItemContext,
  path: string,
): StatusItem | PaymentItem {
  return isPaymentEntry(entry) ? readPaymentItem(entry, context, path) : readStatusItem(entry, context, path);
}

function readStatusItem(entry: JsonNode, context: ItemContext, path: string): StatusItem {
  const rawId = rawIdOf(member(entry, 'id'));
  if (rawId === null) throw new ItemRefused('missing_id');
  const rawStatus = stringOf(member(entry, 'status'));
  if (!rawStatus) throw new ItemRefused('missing_status');
  const upstreamId = storableId(rawId);
  // Upstream's pages spell the first one both ways.
  const participantWaId =
    rawIdOf(member(entry, 'recipient_participant_id')) ?? rawIdOf(member(entry, 'participant_recipient_id'));
  const participantUserId = rawIdOf(member(entry, 'recipient_participant_user_id'));
  const rawParticipant = participantWaId ?? participantUserId;
  // A group status' recipient_id is the group.
  const isGroup = stringOf(member(entry, 'recipient_type')) === 'group' || rawParticipant !== null;
  const ids = {
    waId: isGroup ? participantWaId : rawIdOf(member(entry, 'recipient_id')),
    userId: isGroup ? participantUserId : rawIdOf(member(entry, 'recipient_user_id')),
  };
  const contacts = contactsOfRecipient(context, ids);
  const errors = member(entry, 'errors');
  const rawJson = sourceOf(entry);
  return {
    kind: 'status',
    path,
    ...context.owner,
    dedupKey: JSON.stringify(['status', context.owner.phoneNumberId, rawId, rawStatus, rawParticipant]),
    laneKey: upstreamId,
    eventId: upstreamId,
    eventData: `{"metadata":${context.metadataJson},${contactsMember(contacts)}"status":${rawJson}${context.othersJson}}`,
    upstreamId,
    status: storableText(rawStatus, MAX_STATUS_CHARS),
    participant: rawParticipant === null ? null : storableId(rawParticipant),
    at: timestampOf(member(entry, 'timestamp')),
    recipient: readRecipient(ids, contacts),
    groupId: isGroup ? idOf(member(entry, 'recipient_id')) : null,
    errorsJson: errors === null || errors.kind === 'null' ? null : sourceOf(errors),
    rawJson,
  };
}

/** Whether upstream reports a message with this error. */
export function hasError({ errorsJson }: Pick<StatusItem, 'errorsJson'>, code: number): boolean {
  if (errorsJson?.includes(String(code)) !== true) return false;
  return items(parseJson(errorsJson)).some((error) => textOf(member(error, 'code')) === String(code));
}

/** Absent where upstream names none: it does so for the newer ids only. */
function contactsMember(contacts: readonly JsonNode[]): string {
  return contacts.length === 0 ? '' : `"contacts":[${contacts.map(sourceOf).join(',')}],`;
}

/** No message has this status. */
const PAYMENT_STATUS = 'captured';
const ID_NAME = /^(?:.*_)?id$/;

/** A payment update. Only a hint: a tenant that needs certainty looks the payment up. */
export type PaymentItem = ItemBase & {
  kind: 'payment';
  referenceId: string | null;
  status: string | null;
  transactionId: string | null;
  /** The customer; null for what upstream does not say. */
  recipient: Spelled;
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
    context.owner.phoneNumberId,
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
  return `{${present.map(([name, json]) => `"${name}":${json}`).join(',')}${context.othersJson}}`;
}

function readPaymentItem(entry: JsonNode, context: ItemContext, path: string): PaymentItem {
  const payment = member(entry, 'payment');
  const referenceId = idOf(member(payment, 'reference_id'));
  const transactionId = idOf(member(member(payment, 'transaction'), 'id'));
  const status = shortTextOf(member(entry, 'status'), MAX_STATUS_CHARS);
  const eventId = `payment:${referenceId ?? ''}:${transactionId ?? ''}:${status ?? ''}`;
  return {
    kind: 'payment',
    path,
    ...context.owner,
    dedupKey: dedupKeyOf(entry, context),
    laneKey: referenceId ?? eventId,
    eventId,
    eventData: eventDataOf(entry, context),
    referenceId,
    status,
    transactionId,
    recipient: {
      ...phoneOf(boundedIdOf(member(entry, 'recipient_id'))),
      userId: boundedIdOf(member(entry, 'recipient_user_id')),
    },
  };
}

function phoneOf(id: string | null): Pick<Spelled, 'waId' | 'otherPhone'> {
  return { waId: id === null ? null : waIdOf(id), otherPhone: null };
}
