import { items, type JsonNode, member } from '../json/json-text.ts';
import { rawIdOf } from './storable-text.ts';

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
};

function isUsable(node: JsonNode): boolean {
  return node.kind === 'object' && !node.tooDeep && node.end - node.start <= MAX_PERSON_CHARS;
}

/** Reads `value.contacts`; entries that are no objects, nested too deep or oversized are passed over. */
export function readContactBook(value: JsonNode): ContactBook {
  const all = items(member(value, 'contacts'))
    .filter(isUsable)
    .map((node, position) => ({
      node,
      position,
      waId: rawIdOf(member(node, 'wa_id')),
      userId: rawIdOf(member(node, 'user_id')),
    }));
  return {
    all,
    byWaId: groupById(all, (contact) => contact.waId),
    byUserId: groupById(all, (contact) => contact.userId),
  };
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
 * The entries of one person, in their order. Matched by either id and never by position, because upstream promises
 * no order; only a person without ids takes the sole entry there is.
 */
export function contactsOfPerson(book: ContactBook, waId: string | null, userId: string | null): JsonNode[] {
  if (waId === null && userId === null) {
    return book.all.length === 1 ? book.all.map((contact) => contact.node) : [];
  }
  const matches = new Set<Contact>();
  for (const contact of (waId !== null && book.byWaId.get(waId)) || []) matches.add(contact);
  for (const contact of (userId !== null && book.byUserId.get(userId)) || []) matches.add(contact);
  let roomChars = MAX_PERSON_CHARS;
  return [...matches]
    .sort((left, right) => left.position - right.position)
    .map((contact) => contact.node)
    .filter((node) => {
      roomChars -= node.end - node.start;
      return roomChars >= 0;
    });
}
