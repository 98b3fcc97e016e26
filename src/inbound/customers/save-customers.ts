import type { Transaction } from '../../platform/postgres/database.ts';
import {
  addConversations,
  type ContactWithConversations,
  type DrawnIds,
  drawIds,
  findContacts,
  findConversations,
  mergeContacts,
  openConversations,
  saveContacts,
} from '../customers.ts';
import type { Owned } from '../intake/owned-item.ts';
import type { MessageItem } from '../split/message-item.ts';
import type { UpstreamItem } from '../split/upstream-items.ts';
import { type BookEntry, CustomerBook } from './customer-book.ts';
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

/** Senders that were seen lately, so that no ids are drawn for them; only a hint. */
const seenSenders = new Set<string>();
const MAX_SEEN = 20_000;

/** Draws ids for the customers of a batch that are likely to be new, beside what is read of the others. */
export async function drawForNewCustomers(
  trx: Transaction,
  items: readonly Owned<UpstreamItem>[],
): Promise<DrawnIds[]> {
  const unseen = new Set<string>();
  for (const { item, wabaId } of items) {
    if (item.kind !== 'message') continue;
    const { userId, waId } = senderIds(item);
    const sender = `${wabaId} ${item.phoneNumberId} ${userId ?? waId}`;
    if (!seenSenders.has(sender)) unseen.add(sender);
  }
  if (seenSenders.size > MAX_SEEN) seenSenders.clear();
  for (const sender of unseen) seenSenders.add(sender);
  return await drawIds(trx, unseen.size);
}

export type SavedCustomers = {
  /** The conversation of each message, and of each status or payment whose customer or group has written before. */
  conversations: Map<UpstreamItem, string>;
  /** Conversations that were there already and are still to be touched. */
  spokenIn: string[];
  /** Statements that have been sent and not been answered yet. */
  written: Promise<unknown>;
};

/**
 * Brings contacts and conversations up to date with a batch. Only one batch of a shard runs at a time,
 * so what was read cannot change underneath. For customers who are known already nothing is written.
 */
export async function saveCustomers(
  trx: Transaction,
  items: readonly Owned<UpstreamItem>[],
  stored: readonly ContactWithConversations[],
  drawn: readonly DrawnIds[],
): Promise<SavedCustomers> {
  const book = new CustomerBook(stored);
  const senders = new Map<Owned<MessageItem>, BookEntry>();
  for (const owned of items) {
    if (isMessage(owned)) senders.set(owned, applyMessage(book, owned));
    else applyStatus(book, owned);
  }
  const contacts = await writeBook(trx, book, drawn);
  const known = book.merges.length > 0 ? null : knownConversations(stored);
  const ofMessages = await conversationsOf(trx, { book, senders, known, drawn });
  const written = Promise.all([contacts.written, ofMessages.written]);
  // Whatever else fails meanwhile is the error that is told.
  written.catch(() => undefined);
  const ofStatuses = await conversationsOfStatuses(trx, book, items, ofMessages.known);
  const ofGroups = await groupConversationsOf(trx, items);
  const conversations = new Map([...ofMessages.conversations, ...ofStatuses, ...ofGroups]);
  return { conversations, spokenIn: ofMessages.spokenIn, written };
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

async function writeBook(
  trx: Transaction,
  book: CustomerBook,
  drawn: readonly DrawnIds[],
): Promise<{ written: Promise<void> }> {
  for (const { wabaId, keptId, droppedId } of book.merges)
    await mergeContacts(trx, wabaId, keptId, droppedId);
  const changed = [...book.changed];
  const fresh = changed.filter((entry) => entry.id === null);
  const ids = await enough(trx, drawn, fresh.length);
  for (const [index, entry] of fresh.entries()) entry.id = ids[index]?.contactId ?? null;
  const written = saveContacts(
    trx,
    changed.flatMap((entry) => (entry.id === null ? [] : [{ ...entry, id: entry.id }])),
  );
  // Whatever else fails meanwhile is the error that is told.
  written.catch(() => undefined);
  return { written };
}

async function enough(
  trx: Transaction,
  drawn: readonly DrawnIds[],
  count: number,
): Promise<readonly DrawnIds[]> {
  return count <= drawn.length ? drawn : [...drawn, ...(await drawIds(trx, count - drawn.length))];
}

type Pair = { wabaId: string; phoneNumberId: string; contactId: string };

/** `known`: by number and contact; null where merged contacts took some over. */
async function conversationsOf(
  trx: Transaction,
  {
    book,
    senders,
    known,
    drawn,
  }: {
    book: CustomerBook;
    senders: ReadonlyMap<Owned<MessageItem>, BookEntry>;
    known: ReadonlyMap<string, string> | null;
    drawn: readonly DrawnIds[];
  },
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
  const missing = [...pairs].filter(([key]) => known?.has(key) !== true).map(([, pair]) => pair);
  const { opened, written } = await openMissing(trx, missing, known === null ? null : drawn);
  const idOf = new Map([...(known ?? []), ...byPair(opened)]);
  const spokenIn = [...pairs.keys()].flatMap((key) => known?.get(key) ?? []);
  const conversations = new Map([...pairOf].map(([item, key]) => [item, idOf.get(key) ?? '']));
  return { conversations, spokenIn, written, known: idOf };
}

/** With drawn ids none of them is there, and nothing has to be waited for. */
async function openMissing(trx: Transaction, missing: readonly Pair[], drawn: readonly DrawnIds[] | null) {
  const none = Promise.resolve();
  if (missing.length === 0) return { opened: [], written: none };
  if (drawn === null) return { opened: await openConversations(trx, missing), written: none };
  const ids = await enough(trx, drawn, missing.length);
  const opened = missing.map((pair, index) => ({ ...pair, id: ids[index]?.conversationId ?? '' }));
  return { opened, written: addConversations(trx, opened) };
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
