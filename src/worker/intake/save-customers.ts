import {
  type ContactWithConversations,
  drawContactIds,
  findContacts,
  findConversations,
  mergeContacts,
  openConversations,
  saveContacts,
} from '../../database/customers.ts';
import type { Transaction } from '../../database/database.ts';
import type { MessageItem } from '../../domain/upstream/message-item.ts';
import type { UpstreamItem } from '../../domain/upstream/upstream-items.ts';
import { type BookEntry, CustomerBook } from './customer-book.ts';
import type { Owned } from './owned-item.ts';
import { groupConversationsOf, groupOf } from './save-groups.ts';

/** Upstream says nothing about who sent it: all such messages of a WABA share one contact. */
const NOBODY = '';

/** The stored contacts that a batch may be about, with their conversations with the batch's numbers. */
export async function findCustomers(
  trx: Transaction,
  items: readonly Owned<UpstreamItem>[],
): Promise<ContactWithConversations[]> {
  if (items.length === 0) return [];
  const phoneNumberIds = new Set(items.map(({ item }) => item.phoneNumberId));
  return await findContacts(trx, idsIn(items), [...phoneNumberIds]);
}

export type SavedCustomers = {
  /** The conversation of each message, and of each status or payment whose customer or group has written before. */
  conversations: Map<UpstreamItem, string>;
  /** Conversations that were there already and are still to be touched. */
  spokenIn: string[];
};

/**
 * Brings contacts and conversations up to date with a batch. Only one batch runs at a time in the whole installation,
 * so what was read cannot change underneath. For customers who are known already nothing is written.
 */
export async function saveCustomers(
  trx: Transaction,
  items: readonly Owned<UpstreamItem>[],
  stored: readonly ContactWithConversations[],
): Promise<SavedCustomers> {
  const book = new CustomerBook(stored);
  const senders = new Map<Owned<MessageItem>, BookEntry>();
  for (const owned of items) {
    if (isMessage(owned)) senders.set(owned, applyMessage(book, owned));
    else applyStatus(book, owned);
  }
  await writeBook(trx, book);
  const known = book.merges.length > 0 ? new Map<string, string>() : knownConversations(stored);
  const ofMessages = await conversationsOf(trx, book, senders, known);
  const ofStatuses = await conversationsOfStatuses(trx, book, items, ofMessages.known);
  const ofGroups = await groupConversationsOf(trx, items);
  const conversations = new Map([...ofMessages.conversations, ...ofStatuses, ...ofGroups]);
  return { conversations, spokenIn: ofMessages.spokenIn };
}

/** By number and contact. */
function knownConversations(stored: readonly ContactWithConversations[]): Map<string, string> {
  return new Map(
    stored.flatMap((contact) =>
      contact.conversations.map(({ id, phoneNumberId }) => [`${phoneNumberId} ${contact.id}`, id] as const),
    ),
  );
}

function isMessage(owned: Owned<UpstreamItem>): owned is Owned<MessageItem> {
  return owned.item.kind === 'message';
}

function idsIn(items: readonly Owned<UpstreamItem>[]) {
  return items.flatMap(({ item, wabaId }) => {
    if (item.kind !== 'message') return [{ wabaId, ...item.recipient }];
    const { userId, waId } = senderIds(item);
    const change = item.identityChange;
    if (change === null) return [{ wabaId, userId, waId }];
    return [
      { wabaId, userId, waId },
      { wabaId, userId: change.previousUserId, waId: change.previousWaId },
      { wabaId, userId: change.userId, waId: change.waId },
    ];
  });
}

function senderIds(item: MessageItem): { userId: string | null; waId: string | null } {
  const { userId, waId } = item.sender;
  return userId === null && waId === null ? { userId: NOBODY, waId: null } : { userId, waId };
}

function applyMessage(book: CustomerBook, { item, wabaId }: Owned<MessageItem>): BookEntry {
  if (item.identityChange !== null) return book.follow({ wabaId, ...item.identityChange });
  const { parentUserId, name, username } = item.sender;
  return book.see({ wabaId, ...senderIds(item), parentUserId, name, username });
}

/** A status or payment that carries both ids of its recipient links them; one alone tells nothing new. */
function applyStatus(book: CustomerBook, { item, wabaId }: Owned<UpstreamItem>): void {
  if (item.kind === 'message') return;
  const { userId, waId } = item.recipient;
  if (userId === null || waId === null) return;
  book.see({ wabaId, userId, waId, parentUserId: null, name: null, username: null });
}

async function writeBook(trx: Transaction, book: CustomerBook): Promise<void> {
  for (const { wabaId, keptId, droppedId } of book.merges)
    await mergeContacts(trx, wabaId, keptId, droppedId);
  const changed = [...book.changed];
  const fresh = changed.filter((entry) => entry.id === null);
  const ids = fresh.length > 0 ? await drawContactIds(trx, fresh.length) : [];
  for (const [index, entry] of fresh.entries()) entry.id = ids[index] ?? null;
  await saveContacts(
    trx,
    changed.flatMap((entry) => (entry.id === null ? [] : [{ ...entry, id: entry.id }])),
  );
}

type Pair = { wabaId: string; phoneNumberId: string; contactId: string };

async function conversationsOf(
  trx: Transaction,
  book: CustomerBook,
  senders: ReadonlyMap<Owned<MessageItem>, BookEntry>,
  known: ReadonlyMap<string, string>,
): Promise<SavedCustomers & { known: ReadonlyMap<string, string> }> {
  const pairs = new Map<string, Pair>();
  const pairOf = new Map<MessageItem, string>();
  for (const [{ item, wabaId }, entry] of senders) {
    // Who writes in a group has written nothing to us alone.
    if (item.groupId !== null) continue;
    const contactId = book.current(entry).id ?? '';
    const key = `${item.phoneNumberId} ${contactId}`;
    pairs.set(key, { wabaId, phoneNumberId: item.phoneNumberId, contactId });
    pairOf.set(item, key);
  }
  const missing = [...pairs].filter(([key]) => !known.has(key)).map(([, pair]) => pair);
  const opened = missing.length === 0 ? [] : await openConversations(trx, missing);
  const idOf = new Map([...known, ...byPair(opened)]);
  const spokenIn = [...pairs.keys()].flatMap((key) => known.get(key) ?? []);
  const conversations = new Map([...pairOf].map(([item, key]) => [item, idOf.get(key) ?? '']));
  return { conversations, spokenIn, known: idOf };
}

function byPair(rows: readonly { id: string; phoneNumberId: string; contactId: string }[]) {
  return rows.map((row) => [`${row.phoneNumberId} ${row.contactId}`, row.id] as const);
}

/** A status opens no conversation: a business may write to a customer who never answered. */
async function conversationsOfStatuses(
  trx: Transaction,
  book: CustomerBook,
  items: readonly Owned<UpstreamItem>[],
  known: ReadonlyMap<string, string>,
): Promise<Map<UpstreamItem, string>> {
  const pairs = new Map<string, { phoneNumberId: string; contactId: string }>();
  const pairOf = new Map<UpstreamItem, string>();
  for (const { item, wabaId } of items) {
    if (item.kind === 'message' || groupOf(item) !== null) continue;
    const contactId = book.find({ wabaId, ...item.recipient })?.id ?? null;
    if (contactId === null) continue;
    const key = `${item.phoneNumberId} ${contactId}`;
    pairs.set(key, { phoneNumberId: item.phoneNumberId, contactId });
    pairOf.set(item, key);
  }
  // Merged contacts took conversations over, so what was read of them no longer holds.
  const found =
    book.merges.length === 0 || pairs.size === 0 ? [] : await findConversations(trx, [...pairs.values()]);
  const idOf = new Map([...known, ...byPair(found)]);
  return new Map(
    [...pairOf].flatMap(([item, key]) => {
      const id = idOf.get(key);
      return id === undefined ? [] : [[item, id] as const];
    }),
  );
}
