import { type JsonNode, member } from '../../platform/json/json-text.ts';
import {
  boundedIdOf,
  idOf,
  shortTextOf,
  storableId,
  storableText,
} from '../../platform/json/storable-text.ts';

const MAX_NAME_CHARS = 256;

/** Who sent a message, as far as upstream says: phone-based id, business-scoped user id, or both. */
export type Sender = {
  waId: string | null;
  userId: string | null;
  parentUserId: string | null;
  name: string | null;
  /** Without the `@` that some payloads put in front. */
  username: string | null;
};

function firstOf<T>(nodes: readonly JsonNode[], read: (node: JsonNode) => T | null): T | null {
  for (const node of nodes) {
    const value = read(node);
    if (value !== null) return value;
  }
  return null;
}

/**
 * Combines the sender ids of a message with the `contacts[]` entries of that sender; the message's own ids win.
 * Throws OversizedIdError.
 */
export function readSender(message: JsonNode, contacts: readonly JsonNode[]): Sender {
  const username = firstOf(contacts, (contact) =>
    shortTextOf(member(member(contact, 'profile'), 'username'), MAX_NAME_CHARS),
  );
  return {
    waId:
      idOf(member(message, 'from')) ?? firstOf(contacts, (contact) => boundedIdOf(member(contact, 'wa_id'))),
    userId:
      idOf(member(message, 'from_user_id')) ??
      firstOf(contacts, (contact) => boundedIdOf(member(contact, 'user_id'))),
    parentUserId:
      idOf(member(message, 'from_parent_user_id')) ??
      firstOf(contacts, (contact) => boundedIdOf(member(contact, 'parent_user_id'))),
    name: firstOf(contacts, (contact) =>
      shortTextOf(member(member(contact, 'profile'), 'name'), MAX_NAME_CHARS),
    ),
    username: username === null ? null : storableText(username.replace(/^@+/, ''), MAX_NAME_CHARS) || null,
  };
}

/**
 * The two ids of the person a status is about: its own, completed from the `contacts[]` entries of that person.
 * Throws OversizedIdError.
 */
export function readRecipient(
  waId: string | null,
  userId: string | null,
  contacts: readonly JsonNode[],
): { waId: string | null; userId: string | null } {
  return {
    waId:
      waId === null
        ? firstOf(contacts, (contact) => boundedIdOf(member(contact, 'wa_id')))
        : storableId(waId),
    userId:
      userId === null
        ? firstOf(contacts, (contact) => boundedIdOf(member(contact, 'user_id')))
        : storableId(userId),
  };
}
