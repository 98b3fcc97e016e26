import { epochTimeOf } from '../../platform/json/epoch-time.ts';
import { items, type JsonNode, member, sourceOf, stringOf, textOf } from '../../platform/json/json-text.ts';
import {
  boundedIdOf,
  idOf,
  rawIdOf,
  shortTextOf,
  storableId,
  storableText,
} from '../../platform/json/storable-text.ts';
import { readPhoneNumber } from '../../platform/phone-number.ts';
import { type OtherMembers, otherMembersOf } from './value-members.ts';

/** How much is kept of texts, in UTF-16 units. */
export const MAX_CHARS = {
  field: 128,
  type: 128,
  mimeType: 256,
  sha256: 128,
  url: 4096,
  caption: 4096,
  fileName: 512,
  mediaError: 512,
};

export type QuarantineReason =
  | 'unknown_field'
  | 'missing_waba_id'
  | 'missing_metadata'
  | 'missing_id'
  | 'missing_status'
  | 'too_deep'
  | 'oversized_metadata'
  | 'unreadable_item';

/** An item cannot become an event and is quarantined. It is thrown and caught within this folder. */
export class ItemRefused extends Error {
  readonly reason: QuarantineReason;

  constructor(reason: QuarantineReason) {
    super(reason);
    this.name = 'ItemRefused';
    this.reason = reason;
  }
}

export type ItemBase = {
  /** Where it stands in the body: `entry[0].changes[1].value.messages[3]`. */
  path: string;
  wabaId: string;
  phoneNumberId: string;
  /** Equal for, and only for, deliveries of the same thing by upstream. A JSON array. */
  dedupKey: string;
  /** The base eventId: events with one lane key keep their order. */
  laneKey: string;
  eventId: string;
  /** JSON text of the event's `data`. */
  eventData: string;
};

export type ItemContext = {
  readonly owner: Pick<ItemBase, 'wabaId' | 'phoneNumberId'>;
  readonly metadataJson: string;
  /** The end of each event's data: what the value says beside its items. */
  readonly othersJson: string;
  readonly contacts: ValueContacts;
};

export type OwnerIds = { readonly wabaId: string | null; readonly phoneNumberId: string | null };

/** The id of an entry, unless its changes say better: in those of partners it is that of a business portfolio. */
export function wabaIdOf(entry: JsonNode): string | null {
  const named = new Set(items(member(entry, 'changes')).map(namedWabaOf));
  const [only] = named;
  return named.size === 1 && only ? only : boundedIdOf(member(entry, 'id'));
}

function namedWabaOf(change: JsonNode): string | null {
  if (stringOf(member(change, 'field')) !== 'account_update') return null;
  return boundedIdOf(member(member(member(change, 'value'), 'waba_info'), 'waba_id'));
}

/** The id of an entry that names no WABA: upstream does so where it reports about one of its numbers. */
export const NO_WABA = '0';

/** The number of a value stands in `metadata`, and in some fields elsewhere. */
const NUMBER_PLACES = ['metadata', 'recipient', 'phone_number_settings'];

/** The number that a value is about; of the field `messages` only `metadata` says it. */
export function phoneNumberIdOf(value: JsonNode | null, field: string | null): string | null {
  const places = field === 'messages' ? ['metadata'] : NUMBER_PLACES;
  for (const place of places) {
    const id = boundedIdOf(member(member(value, place), 'phone_number_id'));
    if (id !== null) return id;
  }
  return null;
}

// Metadata is repeated in each event of a value; real ones have a hundred characters.
const MAX_METADATA_CHARS = 16_384;

/** The shared part of a value's items, or the reason why none of them can become an event. */
export function readItemContext(
  { wabaId, phoneNumberId }: OwnerIds,
  value: JsonNode,
  others: OtherMembers,
): ItemContext | QuarantineReason {
  const metadata = member(value, 'metadata');
  if (metadata === null || phoneNumberId === null) return 'missing_metadata';
  if (wabaId === null) return 'missing_waba_id';
  if (metadata.tooDeep) return 'too_deep';
  const metadataJson = sourceOf(metadata);
  if (metadataJson.length > MAX_METADATA_CHARS) return 'oversized_metadata';
  return {
    owner: { wabaId, phoneNumberId },
    metadataJson,
    othersJson: otherMembersOf(others.json),
    contacts: readContacts(value),
  };
}

// A person has one entry, of some hundred characters, that is repeated in each of the person's events. The limits
// bound what a hostile body can multiply; an entry beyond them is left out, so that the message itself arrives.
const MAX_ENTRIES_PER_ID = 16;
const MAX_PERSON_CHARS = 16_384;

type Contact = { node: JsonNode; position: number; waId: string | null; userId: string | null };

type ValueContacts = {
  readonly byWaId: ReadonlyMap<string, readonly Contact[]>;
  readonly byUserId: ReadonlyMap<string, readonly Contact[]>;
  readonly sole: JsonNode | null;
  readonly hasOneSender: boolean;
  readonly hasOneRecipient: boolean;
};

/** Entries that are no objects, nested too deep or oversized are passed over. */
export function readContacts(value: JsonNode): ValueContacts {
  const entries = items(member(value, 'contacts'));
  const usable = entries.filter(
    (node) => node.kind === 'object' && !node.tooDeep && node.end - node.start <= MAX_PERSON_CHARS,
  );
  const contacts = usable.map((node, position) => ({
    node,
    position,
    waId: rawIdOf(member(node, 'wa_id')),
    userId: rawIdOf(member(node, 'user_id')),
  }));
  return {
    byWaId: groupById(contacts, 'waId'),
    byUserId: groupById(contacts, 'userId'),
    sole: entries.length === 1 ? (usable[0] ?? null) : null,
    hasOneSender: countPeople(value, 'messages', SENDER_IDS) === 1,
    hasOneRecipient:
      countPeople(value, 'statuses', RECIPIENT_IDS) === 1 && items(member(value, 'messages')).length === 0,
  };
}

const SENDER_IDS = ['from', 'from_user_id'];
const RECIPIENT_IDS = [
  'recipient_participant_id',
  'participant_recipient_id',
  'recipient_participant_user_id',
  'recipient_id',
  'recipient_user_id',
];

/** By the first id that each has: a person with two is counted once, unless entries of one value name different ones. */
function countPeople(value: JsonNode, list: 'messages' | 'statuses', idNames: readonly string[]): number {
  const people = items(member(value, list)).map((entry) => {
    const name = idNames.find((idName) => rawIdOf(member(entry, idName)) !== null);
    return name === undefined ? null : rawIdOf(member(entry, name));
  });
  return new Set(people).size;
}

function groupById(contacts: readonly Contact[], idName: 'waId' | 'userId') {
  const groups = new Map<string, Contact[]>();
  for (const contact of contacts) {
    const id = contact[idName];
    if (id === null) continue;
    const group = groups.get(id);
    if (!group) groups.set(id, [contact]);
    else if (group.length < MAX_ENTRIES_PER_ID) group.push(contact);
  }
  return groups;
}

/** The ids of a person: phone-based, business-scoped, or both. */
export type PersonIds = { waId: string | null; userId: string | null };

/** `otherPhone`: the digits under which upstream names the phone of `waId` beside it. */
export type Spelled = PersonIds & { otherPhone: string | null };

/** Nearly every number of upstream, so that nothing more is done for it. */
const PLAIN_DIGITS = /^[1-9]\d*$/;

/** A phone number as it is kept, without a plus sign or zeros in front; what is none stays as it is. */
export function waIdOf(id: string): string {
  return PLAIN_DIGITS.test(id) ? id : (readPhoneNumber(id) ?? id);
}

/**
 * The entries of the sender of a message, in their order: matched by either id and never by position, because upstream
 * promises no order. Upstream writes a phone in more than one way, so where there is one sender and one entry, it is
 * theirs whatever the ids say.
 */
export function contactsOfSender({ contacts }: Pick<ItemContext, 'contacts'>, ids: PersonIds): JsonNode[] {
  // A message that names no sender is most likely of the only one.
  const isNameless = ids.waId === null && ids.userId === null;
  return contactsOfPerson(contacts, ids, contacts.hasOneSender || isNameless);
}

/** The entries of the person that a status is about, likewise. */
export function contactsOfRecipient({ contacts }: ItemContext, ids: PersonIds): JsonNode[] {
  return contactsOfPerson(contacts, ids, contacts.hasOneRecipient);
}

function contactsOfPerson(contacts: ValueContacts, { waId, userId }: PersonIds, mayTakeSole: boolean) {
  const matches = new Set([
    ...((waId !== null && contacts.byWaId.get(waId)) || []),
    ...((userId !== null && contacts.byUserId.get(userId)) || []),
  ]);
  if (matches.size === 0 && mayTakeSole) return contacts.sole === null ? [] : [contacts.sole];
  let roomChars = MAX_PERSON_CHARS;
  return [...matches]
    .sort((left, right) => left.position - right.position)
    .map((contact) => contact.node)
    .filter((node) => {
      roomChars -= node.end - node.start;
      return roomChars >= 0;
    });
}

export type Sender = Spelled & {
  parentUserId: string | null;
  name: string | null;
  /** Without the `@` that some payloads put in front. */
  username: string | null;
};

const MAX_NAME_CHARS = 256;

/** The phone of an item and that of the entry beside it may differ, as upstream says: the entry has the `wa_id`. */
function spelled(phone: string | null, contacts: readonly JsonNode[]): Pick<Spelled, 'waId' | 'otherPhone'> {
  const entries = contacts.flatMap((contact) => boundedIdOf(member(contact, 'wa_id')) ?? []).map(waIdOf);
  const [first = null] = entries;
  const isPair = phone !== null && first !== null && !entries.includes(phone) && areBothPhones(phone, first);
  return isPair ? { waId: first, otherPhone: phone } : { waId: phone ?? first, otherPhone: null };
}

function areBothPhones(one: string, other: string): boolean {
  return PLAIN_DIGITS.test(one) && PLAIN_DIGITS.test(other);
}

/** Spellings differ behind the country (a 9 or a 1 more, in Brazil, Mexico and Argentina); its code and the subscriber's digits are the same. */
const COUNTRY_DIGITS = 2;
const SUBSCRIBER_DIGITS = 6;

function isSpelling(one: string, other: string): boolean {
  const isSame = (from: number, to?: number) => one.slice(from, to) === other.slice(from, to);
  return isSame(0, COUNTRY_DIGITS) && isSame(-SUBSCRIBER_DIGITS);
}

/**
 * The entries that are about this person. The only entry beside the only item goes out with it, as upstream says; but where both its phone and its user
 * id are another person's, taking the two for one customer would let the erasure of the one erase the other.
 */
function entriesOf({ waId, userId }: PersonIds, contacts: readonly JsonNode[]): JsonNode[] {
  if (waId === null) return [...contacts];
  return contacts.filter((contact) => {
    const ofEntry = boundedIdOf(member(contact, 'wa_id'));
    const entry = ofEntry === null ? null : waIdOf(ofEntry);
    const isOther =
      entry !== null && entry !== waId && areBothPhones(entry, waId) && !isSpelling(entry, waId);
    return !isOther || (userId !== null && boundedIdOf(member(contact, 'user_id')) === userId);
  });
}

/** The sender of a message, completed from the `contacts[]` entries of that sender. Throws OversizedIdError. */
export function readSender(message: JsonNode, given: readonly JsonNode[]): Sender {
  const from = idOf(member(message, 'from'));
  const phone = from === null ? null : waIdOf(from);
  const contacts = entriesOf({ waId: phone, userId: idOf(member(message, 'from_user_id')) }, given);
  const id = (own: string, name: string) => idOf(member(message, own)) ?? contactId(contacts, name);
  const ofProfile = (name: string) =>
    firstOf(contacts, (contact) => shortTextOf(member(member(contact, 'profile'), name), MAX_NAME_CHARS));
  const username = ofProfile('username')?.replace(/^@+/, '') ?? '';
  // A change of the number has the old one and the new one.
  const isSystem = stringOf(member(message, 'type')) === 'system';
  return {
    ...spelled(phone, isSystem && phone !== null ? [] : contacts),
    userId: id('from_user_id', 'user_id'),
    parentUserId: id('from_parent_user_id', 'parent_user_id'),
    name: ofProfile('name'),
    username: storableText(username, MAX_NAME_CHARS) || null,
  };
}

/** The person that a status is about, completed from the `contacts[]` entries of that person. Throws OversizedIdError. */
export function readRecipient({ waId, userId }: PersonIds, given: readonly JsonNode[]): Spelled {
  const phone = waId === null ? null : waIdOf(storableId(waId));
  const contacts = entriesOf({ waId: phone, userId }, given);
  return {
    ...spelled(phone, contacts),
    userId: userId === null ? contactId(contacts, 'user_id') : storableId(userId),
  };
}

function contactId(contacts: readonly JsonNode[], name: string): string | null {
  return firstOf(contacts, (contact) => boundedIdOf(member(contact, name)));
}

function firstOf<T>(nodes: readonly JsonNode[], read: (node: JsonNode) => T | null): T | null {
  for (const node of nodes) {
    const value = read(node);
    if (value !== null) return value;
  }
  return null;
}

/** The moment an upstream `timestamp` names; null when it is missing or makes no sense. */
export function timestampOf(node: JsonNode | null): Date | null {
  return epochTimeOf(textOf(node));
}

const ERASED = 'heliograph_erased';

/** The mark that stands in place of an erased part of a body, so that the paths of the others stay as they are. */
export const ERASED_PART = `{"${ERASED}":true}`;

export function isErased(node: JsonNode): boolean {
  return node.kind === 'object' && member(node, ERASED) !== null;
}
