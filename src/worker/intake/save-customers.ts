import {
  type Contact,
  drawContactIds,
  findContacts,
  findConversations,
  mergeContacts,
  openConversations,
  saveContacts,
} from '../../database/customers.ts';
import type { Transaction } from '../../database/database.ts';
import type { MessageItem } from '../../domain/upstream/message-item.ts';
import type { StatusItem } from '../../domain/upstream/status-item.ts';
import { type BookEntry, CustomerBook } from './customer-book.ts';
import type { Owned } from './owned-item.ts';

/** Upstream says nothing about who sent it: all such messages of a WABA share one contact. */
const NOBODY = '';

/** The stored contacts that a batch may be about. */
export async function findCustomers(
  trx: Transaction,
  items: readonly Owned<MessageItem | StatusItem>[],
): Promise<Contact[]> {
  return items.length === 0 ? [] : await findContacts(trx, idsIn(items));
}

/**
 * Brings contacts and conversations up to date with a batch; returns the conversation id of each message, and of
 * each status whose recipient has written before.
 * Only one batch runs at a time in the whole installation, so what was read cannot change underneath.
 */
export async function saveCustomers(
  trx: Transaction,
  items: readonly Owned<MessageItem | StatusItem>[],
  stored: readonly Contact[],
): Promise<Map<MessageItem | StatusItem, string>> {
  const book = new CustomerBook(stored);
  const senders = new Map<Owned<MessageItem>, BookEntry>();
  for (const owned of items) {
    if (isMessage(owned)) senders.set(owned, applyMessage(book, owned));
    else applyStatus(book, owned);
  }
  await writeBook(trx, book);
  const [ofMessages, ofStatuses] = await Promise.all([
    conversationsOf(trx, book, senders),
    conversationsOfStatuses(trx, book, items),
  ]);
  return new Map<MessageItem | StatusItem, string>([...ofMessages, ...ofStatuses]);
}

function isMessage(owned: Owned<MessageItem | StatusItem>): owned is Owned<MessageItem> {
  return owned.item.kind === 'message';
}

function idsIn(items: readonly Owned<MessageItem | StatusItem>[]) {
  return items.flatMap(({ item, wabaId }) => {
    if (item.kind === 'status') return [{ wabaId, ...item.recipient }];
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

/** A status that carries both ids of its recipient links them; one alone tells nothing new. */
function applyStatus(book: CustomerBook, { item, wabaId }: Owned<MessageItem | StatusItem>): void {
  if (item.kind !== 'status') return;
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

async function conversationsOf(
  trx: Transaction,
  book: CustomerBook,
  senders: ReadonlyMap<Owned<MessageItem>, BookEntry>,
): Promise<Map<MessageItem, string>> {
  const pairs = new Map<string, { wabaId: string; phoneNumberId: string; contactId: string }>();
  const pairOf = new Map<MessageItem, string>();
  for (const [{ item, wabaId }, entry] of senders) {
    const contactId = book.current(entry).id ?? '';
    const key = `${item.phoneNumberId} ${contactId}`;
    pairs.set(key, { wabaId, phoneNumberId: item.phoneNumberId, contactId });
    pairOf.set(item, key);
  }
  if (pairs.size === 0) return new Map();
  const rows = await openConversations(trx, [...pairs.values()]);
  const idOf = new Map(rows.map((row) => [`${row.phoneNumberId} ${row.contactId}`, row.id]));
  return new Map([...pairOf].map(([item, key]) => [item, idOf.get(key) ?? '']));
}

/** A status opens no conversation: a business may write to a customer who never answered. */
async function conversationsOfStatuses(
  trx: Transaction,
  book: CustomerBook,
  items: readonly Owned<MessageItem | StatusItem>[],
): Promise<Map<StatusItem, string>> {
  const pairOf = new Map<StatusItem, { phoneNumberId: string; contactId: string }>();
  for (const { item, wabaId } of items) {
    if (item.kind !== 'status') continue;
    const contactId = book.find({ wabaId, ...item.recipient })?.id ?? null;
    if (contactId !== null) pairOf.set(item, { phoneNumberId: item.phoneNumberId, contactId });
  }
  if (pairOf.size === 0) return new Map();
  const rows = await findConversations(trx, [...pairOf.values()]);
  const idOf = new Map(rows.map((row) => [`${row.phoneNumberId} ${row.contactId}`, row.id]));
  const found = new Map<StatusItem, string>();
  for (const [item, { phoneNumberId, contactId }] of pairOf) {
    const id = idOf.get(`${phoneNumberId} ${contactId}`);
    if (id !== undefined) found.set(item, id);
  }
  return found;
}
