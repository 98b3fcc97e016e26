import {
  type Contact,
  type ContactWithConversations,
  type DrawnIds,
  drawIds,
  findContacts,
  saveContacts,
} from '../../features/customers/customers.ts';
import { noteAliases } from '../../features/customers/phone-aliases.ts';
import { mergeCustomers } from '../../features/messages/messages.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import type { PersonIds, Spelled } from '../split/item-context.ts';
import type { MessageItem } from '../split/message-items.ts';
import type { NumberItem, Owned } from '../split/upstream-items.ts';
import {
  conversationsOf,
  conversationsOfGroups,
  conversationsOfStatuses,
  enough,
  keyOf,
  type SavedConversations,
} from './batch-conversations.ts';
import { type BatchCustomer, BatchCustomers } from './batch-customers.ts';

/** Upstream says nothing about who sent it: all such messages of a WABA share one contact. */
const NO_SENDER = { userId: '', waId: null };

export async function findCustomers(
  trx: Transaction,
  items: readonly Owned<NumberItem>[],
): Promise<ContactWithConversations[]> {
  if (items.length === 0) return [];
  const phoneNumberIds = new Set(items.map(({ item }) => item.phoneNumberId));
  return await findContacts(trx, items.flatMap(idsIn), [...phoneNumberIds]);
}

function idsIn({ item, wabaId }: Owned<NumberItem>): (PersonIds & { wabaId: string })[] {
  if (item.kind !== 'message') return spellingsOf({ wabaId, ...item.recipient });
  const { identityChange: change } = item;
  const sender = { wabaId, ...senderIds(item) };
  if (change === null) return spellingsOf({ ...sender, otherPhone: item.sender.otherPhone });
  const before = { wabaId, userId: change.previousUserId, waId: change.previousWaId };
  return [sender, before, { wabaId, userId: change.userId, waId: change.waId }];
}

/** The ids of a person, for each spelling of the phone. */
export function spellingsOf({ wabaId, userId, waId, otherPhone }: Spelled & { wabaId: string }) {
  const own = { wabaId, userId, waId };
  return otherPhone === null ? [own] : [own, { wabaId, userId: null, waId: otherPhone }];
}

function senderIds({ sender: { userId, waId } }: MessageItem): PersonIds {
  return userId === null && waId === null ? NO_SENDER : { userId, waId };
}

/** Senders that were seen lately, so that no ids are drawn for them; only a hint. */
const seenSenders = new Set<string>();
const MAX_SEEN = 20_000;

/** Draws ids for the customers of a batch that are likely to be new, beside what is read of the others. */
export async function drawForNewCustomers(
  trx: Transaction,
  items: readonly Owned<NumberItem>[],
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

export type SavedCustomers = SavedConversations & {
  senders: Map<MessageItem, Contact>;
};

/**
 * Brings contacts and conversations up to date with a batch. Only one batch of a shard runs at a time,
 * so what was read cannot change underneath. For customers who are known already nothing is written.
 */
export async function saveCustomers(
  trx: Transaction,
  items: readonly Owned<NumberItem>[],
  stored: readonly ContactWithConversations[],
  drawn: readonly DrawnIds[],
): Promise<SavedCustomers> {
  const customers = new BatchCustomers(stored);
  const senders = new Map(items.flatMap((owned) => applyItem(customers, owned)));
  const contactsWritten = await writeContacts(trx, customers, drawn);
  // Merged contacts took conversations over, so what was read of them no longer holds.
  const known = customers.merges.length > 0 ? null : knownConversations(stored);
  const ofMessages = await conversationsOf(trx, { customers, senders, known, drawn });
  const written = Promise.all([contactsWritten.done, ofMessages.written]);
  // Whatever else fails meanwhile is the error that is reported.
  written.catch(() => undefined);
  const ofStatuses = await conversationsOfStatuses(trx, customers, items, ofMessages.known);
  const ofGroups = await conversationsOfGroups(trx, items);
  const conversations = new Map([...ofMessages.conversations, ...ofStatuses, ...ofGroups]);
  const stillCalled = [...senders].flatMap(([item, sender]) => {
    const { id, ...customer } = customers.current(sender);
    return id === null ? [] : [[item, { id, ...customer }] as const];
  });
  return { senders: new Map(stillCalled), conversations, touched: ofMessages.touched, written };
}

/** Notes what an item says about its customer; returns the sender of a message. */
function applyItem(
  customers: BatchCustomers,
  { item, wabaId }: Owned<NumberItem>,
): [MessageItem, BatchCustomer][] {
  if (item.kind === 'message') {
    if (item.identityChange !== null) return [[item, customers.follow({ wabaId, ...item.identityChange })]];
    return [[item, customers.see({ ...item.sender, ...senderIds(item), wabaId })]];
  }
  // A status or payment that has both ids of its recipient links them; one alone adds nothing.
  const { userId, waId, otherPhone } = item.recipient;
  const areSeveral = waId !== null && (userId !== null || otherPhone !== null);
  const isKnown =
    customers.find({ wabaId, userId, waId }) ?? customers.find({ wabaId, userId, waId: otherPhone });
  if (areSeveral && (userId !== null || isKnown !== undefined))
    customers.see({ wabaId, userId, waId, otherPhone, parentUserId: null, name: null, username: null });
  return [];
}

function knownConversations(stored: readonly ContactWithConversations[]): Map<string, string> {
  return new Map(
    stored.flatMap(({ id: partnerId, conversations }) =>
      conversations.map(({ id, phoneNumberId }) => [keyOf({ phoneNumberId, partnerId }), id] as const),
    ),
  );
}

/** Resolves when ids are given; `done` when the rows are there. */
export async function writeContacts(
  trx: Transaction,
  customers: BatchCustomers,
  drawn: readonly DrawnIds[],
): Promise<{ done: Promise<void> }> {
  for (const { wabaId, keptId, droppedId } of customers.merges)
    await mergeCustomers(trx, wabaId, keptId, droppedId);
  await noteAliases(trx, customers.aliases);
  const changed = [...customers.changed];
  const fresh = changed.filter((customer) => customer.id === null);
  const ids = await enough(trx, drawn, fresh.length);
  for (const [index, customer] of fresh.entries()) customer.id = ids[index]?.contactId ?? null;
  const done = saveContacts(
    trx,
    changed.flatMap((customer) => (customer.id === null ? [] : [{ ...customer, id: customer.id }])),
  );
  // Whatever else fails meanwhile is the error that is reported.
  done.catch(() => undefined);
  return { done };
}
