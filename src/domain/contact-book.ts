import { items, type JsonNode, member } from './json-text.ts';
import { rawIdOf } from './storable-text.ts';

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

/** Reads `value.contacts`; entries that are no objects are passed over. */
export function readContactBook(value: JsonNode): ContactBook {
  const all = items(member(value, 'contacts'))
    .filter((node) => node.kind === 'object')
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
    if (group) group.push(contact);
    else groups.set(id, [contact]);
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
  return [...matches].sort((left, right) => left.position - right.position).map((contact) => contact.node);
}
