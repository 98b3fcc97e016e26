import { items, type JsonNode, member } from '../../platform/json/json-text.ts';
import { rawIdOf } from '../../platform/json/storable-text.ts';

// A person has one entry, of some hundred characters, that is repeated in each of the person's events. The limits
// bound what a hostile body can multiply; an entry beyond them is left out, so that the message itself arrives.
const MAX_ENTRIES_PER_ID = 16;
const MAX_PERSON_CHARS = 16_384;

type Contact = {
  readonly node: JsonNode;
  readonly position: number;
  readonly waId: string | null;
  readonly userId: string | null;
};

/** The `contacts[]` of one upstream value, indexed by the ids in it. */
export type ContactBook = {
  readonly all: readonly Contact[];
  readonly byWaId: ReadonlyMap<string, readonly Contact[]>;
  readonly byUserId: ReadonlyMap<string, readonly Contact[]>;
  /** The only entry there is. */
  readonly sole: JsonNode | null;
  /** All messages of the value are from one person. */
  readonly hasOneSender: boolean;
  /** All statuses of the value are about one person, and there are no messages. */
  readonly hasOneRecipient: boolean;
};

function isUsable(node: JsonNode): boolean {
  return node.kind === 'object' && !node.tooDeep && node.end - node.start <= MAX_PERSON_CHARS;
}

/** Reads `value.contacts`; entries that are no objects, nested too deep or oversized are passed over. */
export function readContactBook(value: JsonNode): ContactBook {
  const entries = items(member(value, 'contacts'));
  const all = entries.filter(isUsable).map((node, position) => ({
    node,
    position,
    waId: rawIdOf(member(node, 'wa_id')),
    userId: rawIdOf(member(node, 'user_id')),
  }));
  return {
    all,
    byWaId: groupById(all, (contact) => contact.waId),
    byUserId: groupById(all, (contact) => contact.userId),
    sole: entries.length === 1 ? (all[0]?.node ?? null) : null,
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

/** By the first id that each has: who has two is counted once, unless entries of one value name different ones. */
function countPeople(value: JsonNode, list: 'messages' | 'statuses', idNames: readonly string[]): number {
  const people = items(member(value, list)).map((entry) => {
    const name = idNames.find((idName) => rawIdOf(member(entry, idName)) !== null);
    return name === undefined ? null : rawIdOf(member(entry, name));
  });
  return new Set(people).size;
}

function groupById(contacts: readonly Contact[], idOfContact: (contact: Contact) => string | null) {
  const groups = new Map<string, Contact[]>();
  for (const contact of contacts) {
    const id = idOfContact(contact);
    if (id === null) continue;
    const group = groups.get(id);
    if (!group) groups.set(id, [contact]);
    else if (group.length < MAX_ENTRIES_PER_ID) group.push(contact);
  }
  return groups;
}

/**
 * The entries of the sender of a message, in their order: matched by either id and never by position, because upstream
 * promises no order. Upstream writes a phone in more than one way, so where there is one sender and one entry, it is
 * theirs whatever the ids say.
 */
export function contactsOfSender(book: ContactBook, waId: string | null, userId: string | null): JsonNode[] {
  return contactsOfPerson(book, waId, userId, book.hasOneSender);
}

/** The entries of the person that a status is about, likewise. */
export function contactsOfRecipient(
  book: ContactBook,
  waId: string | null,
  userId: string | null,
): JsonNode[] {
  return contactsOfPerson(book, waId, userId, book.hasOneRecipient);
}

function contactsOfPerson(
  book: ContactBook,
  waId: string | null,
  userId: string | null,
  isOnlyPerson: boolean,
): JsonNode[] {
  const matches = new Set<Contact>();
  for (const contact of (waId !== null && book.byWaId.get(waId)) || []) matches.add(contact);
  for (const contact of (userId !== null && book.byUserId.get(userId)) || []) matches.add(contact);
  const mayTakeSole = isOnlyPerson || (waId === null && userId === null);
  if (matches.size === 0 && mayTakeSole) return book.sole === null ? [] : [book.sole];
  let roomChars = MAX_PERSON_CHARS;
  return [...matches]
    .sort((left, right) => left.position - right.position)
    .map((contact) => contact.node)
    .filter((node) => {
      roomChars -= node.end - node.start;
      return roomChars >= 0;
    });
}
