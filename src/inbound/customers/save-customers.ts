import {
  addConversations,
  type Contact,
  type ContactWithConversations,
  type ConversationPair,
  type DrawnIds,
  drawIds,
  findContacts,
  findConversations,
  mergeContacts,
  openConversations,
  saveContacts,
} from '../../customers/customers.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import type { PersonIds } from '../split/item-context.ts';
import type { IdentityChange, MessageItem, NumberItem, Owned } from '../split/upstream-items.ts';

/** Upstream says nothing about who sent it: all such messages of a WABA share one contact. */
const NO_SENDER = { userId: '', waId: null };

/** The stored contacts that a batch may be about, with their conversations with the batch's numbers. */
export async function findCustomers(
  trx: Transaction,
  items: readonly Owned<NumberItem>[],
): Promise<ContactWithConversations[]> {
  if (items.length === 0) return [];
  const phoneNumberIds = new Set(items.map(({ item }) => item.phoneNumberId));
  return await findContacts(trx, items.flatMap(idsIn), [...phoneNumberIds]);
}

function idsIn({ item, wabaId }: Owned<NumberItem>): (PersonIds & { wabaId: string })[] {
  if (item.kind !== 'message') return [{ wabaId, ...item.recipient }];
  const { identityChange: change } = item;
  const sender = { wabaId, ...senderIds(item) };
  if (change === null) return [sender];
  const before = { wabaId, userId: change.previousUserId, waId: change.previousWaId };
  return [sender, before, { wabaId, userId: change.userId, waId: change.waId }];
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

export type SavedCustomers = {
  /** The sender of each message, as stored now. */
  senders: Map<MessageItem, Contact>;
  /** The conversation of each message, and of each status or payment whose customer or group has written before. */
  conversations: Map<NumberItem, string>;
  /** Conversations that were there already and are still to be touched. */
  touched: string[];
  /** Statements that have been sent and have no response yet. */
  written: Promise<unknown>;
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
  // Whatever else fails meanwhile is the error that is told.
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
  // A status or payment that has both ids of its recipient links them; one alone tells nothing new.
  const { userId, waId } = item.recipient;
  if (userId !== null && waId !== null)
    customers.see({ wabaId, userId, waId, parentUserId: null, name: null, username: null });
  return [];
}

function keyOf({ phoneNumberId, partnerId }: Omit<ConversationPair, 'wabaId'>): string {
  return `${phoneNumberId} ${partnerId}`;
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
    await mergeContacts(trx, wabaId, keptId, droppedId);
  const changed = [...customers.changed];
  const fresh = changed.filter((customer) => customer.id === null);
  const ids = await enough(trx, drawn, fresh.length);
  for (const [index, customer] of fresh.entries()) customer.id = ids[index]?.contactId ?? null;
  const done = saveContacts(
    trx,
    changed.flatMap((customer) => (customer.id === null ? [] : [{ ...customer, id: customer.id }])),
  );
  // Whatever else fails meanwhile is the error that is told.
  done.catch(() => undefined);
  return { done };
}

async function enough(
  trx: Transaction,
  drawn: readonly DrawnIds[],
  count: number,
): Promise<readonly DrawnIds[]> {
  return count <= drawn.length ? drawn : [...drawn, ...(await drawIds(trx, count - drawn.length))];
}

type Known = ReadonlyMap<string, string>;

async function conversationsOf(
  trx: Transaction,
  batch: {
    customers: BatchCustomers;
    senders: ReadonlyMap<MessageItem, BatchCustomer>;
    known: Known | null;
    drawn: readonly DrawnIds[];
  },
): Promise<Omit<SavedCustomers, 'senders'> & { known: Known }> {
  const { customers, senders, known, drawn } = batch;
  const pairs = new Map<string, ConversationPair>();
  const pairOf = new Map<MessageItem, string>();
  for (const [item, sender] of senders) {
    // Who writes in a group has written nothing to us alone.
    if (item.groupId !== null) continue;
    const { id, wabaId } = customers.current(sender);
    const pair = { wabaId, phoneNumberId: item.phoneNumberId, partnerId: id ?? '' };
    pairs.set(keyOf(pair), pair);
    pairOf.set(item, keyOf(pair));
  }
  const missing = [...pairs].filter(([key]) => known?.has(key) !== true).map(([, pair]) => pair);
  const { opened, written } = await openMissing(trx, missing, known === null ? null : drawn);
  const idOf = new Map([...(known ?? []), ...byPair(opened)]);
  const touched = [...pairs.keys()].flatMap((key) => known?.get(key) ?? []);
  const conversations = new Map([...pairOf].map(([item, key]) => [item, idOf.get(key) ?? '']));
  return { conversations, touched, written, known: idOf };
}

/** With drawn ids none of them is there, and nothing has to be waited for. */
async function openMissing(
  trx: Transaction,
  missing: readonly ConversationPair[],
  drawn: readonly DrawnIds[] | null,
) {
  const none = Promise.resolve();
  if (missing.length === 0) return { opened: [], written: none };
  if (drawn === null) return { opened: await openConversations(trx, 'contact', missing), written: none };
  const ids = await enough(trx, drawn, missing.length);
  const opened = missing.map((pair, index) => ({ ...pair, id: ids[index]?.conversationId ?? '' }));
  return { opened, written: addConversations(trx, opened) };
}

function byPair(rows: readonly (Omit<ConversationPair, 'wabaId'> & { id: string })[]) {
  return rows.map((row) => [keyOf(row), row.id] as const);
}

type PlacedItem = { item: NumberItem; pair: ConversationPair };

/** Of the items those whose conversation is among the known ones. */
function placed(items: readonly PlacedItem[], known: Known): (readonly [NumberItem, string])[] {
  return items.flatMap(({ item, pair }) => {
    const id = known.get(keyOf(pair));
    return id === undefined ? [] : [[item, id] as const];
  });
}

/** A status opens no conversation: a business may write to a customer who never wrote back. */
async function conversationsOfStatuses(
  trx: Transaction,
  customers: BatchCustomers,
  items: readonly Owned<NumberItem>[],
  known: Known,
) {
  const statuses = items.flatMap(({ item, wabaId }): PlacedItem[] => {
    if (item.kind === 'message' || groupOf(item) !== null) return [];
    const partnerId = customers.find({ wabaId, ...item.recipient })?.id ?? null;
    return partnerId === null
      ? []
      : [{ item, pair: { wabaId, phoneNumberId: item.phoneNumberId, partnerId } }];
  });
  const found =
    customers.merges.length === 0 ? [] : await findConversations(trx, 'contact', distinct(statuses));
  return placed(statuses, new Map([...known, ...byPair(found)]));
}

/** An item of a group belongs to the group's conversation, not to its sender's. A message opens it, a status does not. */
async function conversationsOfGroups(trx: Transaction, items: readonly Owned<NumberItem>[]) {
  const inGroups = items.flatMap(({ item, wabaId }): PlacedItem[] => {
    const partnerId = groupOf(item);
    return partnerId === null
      ? []
      : [{ item, pair: { wabaId, phoneNumberId: item.phoneNumberId, partnerId } }];
  });
  if (inGroups.length === 0) return [];
  const messages = inGroups.filter(({ item }) => item.kind === 'message');
  const opened = new Map(byPair(await openConversations(trx, 'group', distinct(messages))));
  const others = distinct(inGroups).filter((pair) => !opened.has(keyOf(pair)));
  return placed(inGroups, new Map([...opened, ...byPair(await findConversations(trx, 'group', others))]));
}

function groupOf(item: NumberItem): string | null {
  return item.kind === 'payment' ? null : item.groupId;
}

function distinct(items: readonly PlacedItem[]): ConversationPair[] {
  return [...new Map(items.map(({ pair }) => [keyOf(pair), pair])).values()];
}

/** What one upstream item says about a customer. */
type Sighting = PersonIds & {
  wabaId: string;
  parentUserId: string | null;
  name: string | null;
  username: string | null;
};

/** `id` is null until a row is drawn for it. */
type BatchCustomer = Omit<Contact, 'id'> & { id: string | null };

type IdName = 'userId' | 'waId';

const DESCRIPTION = ['profileName', 'username', 'parentUserId'] as const;

/**
 * The customers of one batch, found by user id or phone. Sightings and changes are applied in the order in which
 * upstream sent them; `merges` lists stored contacts that turned out to be the same person.
 */
export class BatchCustomers {
  readonly merges: { wabaId: string; keptId: string; droppedId: string }[] = [];
  readonly changed = new Set<BatchCustomer>();
  readonly #by = { userId: new Map<string, BatchCustomer>(), waId: new Map<string, BatchCustomer>() };
  readonly #replaced = new Map<BatchCustomer, BatchCustomer>();

  constructor(stored: readonly Contact[]) {
    for (const contact of stored) this.#index({ ...contact });
  }

  /** The contact that a sighting is of, created or completed from it. */
  see(sighting: Sighting): BatchCustomer {
    const customer = this.#match(sighting) ?? this.#create(sighting.wabaId);
    this.#setId(customer, 'userId', sighting.userId);
    this.#setId(customer, 'waId', sighting.waId);
    const { name: profileName, username, parentUserId } = sighting;
    const said = { profileName, username, parentUserId };
    for (const member of DESCRIPTION) {
      if (said[member] === null || said[member] === customer[member]) continue;
      customer[member] = said[member];
      this.changed.add(customer);
    }
    return customer;
  }

  /** Gives the contact under the old ids the new ones, as upstream names both, so that its history goes on under them. */
  follow(change: IdentityChange & { wabaId: string }): BatchCustomer {
    const { wabaId, userId, waId } = change;
    const before = this.#match({ wabaId, userId: change.previousUserId, waId: change.previousWaId });
    const after = this.#match({ wabaId, userId, waId });
    const customer = this.#same(before, after) ?? this.#create(wabaId);
    this.#setId(customer, 'waId', waId);
    this.#setId(customer, 'userId', userId);
    return customer;
  }

  /** The contact that is known under one of the ids, as it is. */
  find(ids: PersonIds & { wabaId: string }): BatchCustomer | undefined {
    return this.#known(ids, 'userId') ?? this.#known(ids, 'waId');
  }

  /** The customer that stands for this one now, after merges. */
  current(customer: BatchCustomer): BatchCustomer {
    const next = this.#replaced.get(customer);
    return next === undefined ? customer : this.current(next);
  }

  #known(ids: PersonIds & { wabaId: string }, name: IdName): BatchCustomer | undefined {
    return ids[name] === null ? undefined : this.#by[name].get(`${ids.wabaId} ${ids[name]}`);
  }

  #match(ids: PersonIds & { wabaId: string }): BatchCustomer | undefined {
    const [user, phone] = [this.#known(ids, 'userId'), this.#known(ids, 'waId')];
    if (phone === undefined || phone === user) return user;
    const isOfAnother = phone.userId !== null && ids.userId !== null && phone.userId !== ids.userId;
    if (!isOfAnother) return this.#same(user, phone);
    this.#clearId(phone, 'waId');
    return user;
  }

  /** One entry for two that are the same person; the older row stays. */
  #same(a: BatchCustomer | undefined, b: BatchCustomer | undefined): BatchCustomer | undefined {
    if (a === undefined || b === undefined || a === b) return a ?? b;
    const [kept, dropped] = isOlder(b, a) ? [b, a] : [a, b];
    const { userId, waId } = dropped;
    this.#clearId(dropped, 'waId');
    this.#clearId(dropped, 'userId');
    this.changed.delete(dropped);
    if (kept.userId === null) this.#setId(kept, 'userId', userId);
    if (kept.waId === null) this.#setId(kept, 'waId', waId);
    kept.profileName ??= dropped.profileName;
    kept.username ??= dropped.username;
    if (kept.id !== null && dropped.id !== null) {
      this.merges.push({ wabaId: kept.wabaId, keptId: kept.id, droppedId: dropped.id });
    }
    this.#replaced.set(dropped, kept);
    this.changed.add(kept);
    return kept;
  }

  #create(wabaId: string): BatchCustomer {
    const nothing = { userId: null, parentUserId: null, waId: null, profileName: null, username: null };
    const customer: BatchCustomer = { id: null, wabaId, ...nothing };
    this.changed.add(customer);
    return customer;
  }

  #setId(customer: BatchCustomer, name: IdName, id: string | null): void {
    if (id === null || id === customer[name]) return;
    const holder = this.#by[name].get(`${customer.wabaId} ${id}`);
    if (holder !== undefined) this.#clearId(holder, name);
    this.#clearId(customer, name);
    customer[name] = id;
    this.changed.add(customer);
    this.#index(customer);
  }

  #clearId(customer: BatchCustomer, name: IdName): void {
    if (customer[name] === null) return;
    this.#by[name].delete(`${customer.wabaId} ${customer[name]}`);
    customer[name] = null;
    this.changed.add(customer);
  }

  #index(customer: BatchCustomer): void {
    const { wabaId, userId, waId } = customer;
    if (userId !== null) this.#by.userId.set(`${wabaId} ${userId}`, customer);
    if (waId !== null) this.#by.waId.set(`${wabaId} ${waId}`, customer);
  }
}

function isOlder(a: BatchCustomer, b: BatchCustomer): boolean {
  if (a.id === null || b.id === null) return a.id !== null;
  return BigInt(a.id) < BigInt(b.id);
}
