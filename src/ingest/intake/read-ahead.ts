import { endpointsOfWabas, type Subscriber } from '../../engine/endpoint/endpoint-settings.ts';
import { readEpochs } from '../../engine/inbox/intake-lock.ts';
import { shardOf } from '../../engine/inbox/shards.ts';
import { findNumberOwners } from '../../features/accounts/number-owners.ts';
import { type ContactWithConversations, type DrawnIds, drawIds } from '../../features/customers/customers.ts';
import { type Database, LastStatements } from '../../platform/postgres/database.ts';
import { findCustomers } from '../senders/save-customers.ts';
import type { Owned } from '../split/upstream-items.ts';
import {
  type FindCustomer,
  isPhoneOf,
  type KnownCustomer,
  type KnownCustomers,
  type PlainItem,
  personKeyOf,
  personOf,
  saysNothingNew,
} from './known-customers.ts';
import { ownedOf } from './owners.ts';
import type { Batch } from './plain-bodies.ts';
import type { IntakeMemory } from './shard-memory.ts';

/** The items with their owners, and who their customers are. */
export type ReadAhead = { owned: Owned<PlainItem>[]; find: FindCustomer };

/**
 * Reads, without any lock, what is not remembered of these items: whose their numbers are, and their customers. Null where
 * the usual way finds that out.
 */
export async function readAhead(
  database: Database,
  memory: IntakeMemory,
  batch: Pick<Batch, 'items' | 'shards' | 'origins'>,
): Promise<ReadAhead | null> {
  await readOwners(database, memory, batch);
  const known = { owners: memory.owners, held: new Set(batch.shards), origins: batch.origins };
  const owned = ownedOf(batch.items, known);
  const find = owned && (await findCustomersOf(database, memory.customers, owned));
  return owned && find && { owned, find };
}

/** The epochs first: the one statement compares them, and so notices what changed behind them. */
async function readOwners(
  database: Database,
  memory: IntakeMemory,
  { items, shards }: Pick<Batch, 'items' | 'shards'>,
): Promise<void> {
  const doubted = shards.map((shard) => memory.of(shard)).filter((shard) => shard.isDoubted());
  const numbers = [...new Set(items.map(({ phoneNumberId }) => phoneNumberId))];
  if (doubted.length === 0 && numbers.every((id) => memory.owners.has(id))) return;
  const [epochs, owners] = await database.transaction(
    async (trx) => new LastStatements(Promise.all([readEpochs(trx, shards), findNumberOwners(trx, numbers)])),
  );
  for (const shard of doubted) {
    const epoch = epochs.get(shard.shard);
    if (epoch !== undefined) shard.adopt(epoch);
  }
  for (const [id, owner] of owners) if (shards.includes(shardOf(owner.wabaId))) memory.owners.set(id, owner);
}

/**
 * The customers of these items, remembered or read. A sender who never wrote gets ids, under which the one statement stores
 * contact and conversation. Null where an item changes a customer.
 */
export async function findCustomersOf(
  database: Database,
  customers: KnownCustomers,
  items: readonly Owned<PlainItem>[],
): Promise<FindCustomer | null> {
  const unknown = items.filter((one) => customers.find(one) === null);
  if (unknown.length === 0) return (one) => customers.find(one);
  const byPerson = new Map(unknown.map((one) => [personKeyOf(one), one]));
  const isSender = ({ item }: Owned<PlainItem>) => item.kind === 'message';
  const wabaIds = [...new Set(unknown.map(({ wabaId }) => wabaId))];
  const [contacts, drawn, endpoints] = await database.transaction(
    async (trx) =>
      new LastStatements(
        Promise.all([
          findCustomers(trx, unknown),
          drawIds(trx, [...byPerson.values()].filter(isSender).length),
          endpointsOfWabas(trx, wabaIds),
        ]),
      ),
  );
  for (const wabaId of wabaIds)
    customers.addSubscribers(
      wabaId,
      endpoints.filter((one) => one.wabaId === wabaId),
    );
  const found = new Map<string, KnownCustomer>();
  const unused = drawn.values();
  for (const [key, one] of byPerson) {
    const customer = customerOf(one, {
      contacts,
      subscribers: customers.subscribersOf(one.wabaId),
      ids: isSender(one) ? unused.next().value : undefined,
    });
    if (customer === null) return null;
    found.set(key, customer);
    if (!customer.isNew) customers.add(one, customer);
  }
  if (!areDifferent([...found.values()].filter(({ isNew }) => isNew))) return null;
  return (one) => {
    const customer = found.get(personKeyOf(one));
    if (customer === undefined) return customers.find(one);
    return saysNothingNew(one.item, customer.person) ? customer : null;
  };
}

type Read = {
  contacts: readonly ContactWithConversations[];
  subscribers: readonly Subscriber[];
  ids: DrawnIds | undefined;
};

/** Null where the item is about several contacts, or opens a conversation of a contact that is there. */
function customerOf(owned: Owned<PlainItem>, { contacts, subscribers, ids }: Read): KnownCustomer | null {
  const { item, wabaId } = owned;
  const { userId, waId, otherPhone } = personOf(item);
  const [contact, ...others] = contacts.filter(
    (one) =>
      one.wabaId === wabaId &&
      ((userId !== null && one.userId === userId) ||
        [waId, otherPhone].some((phone) => phone !== null && isPhoneOf(one, phone))),
  );
  if (contact === undefined) {
    if (item.kind === 'status') return { person: null, subscribers, isNew: false };
    // An alias is stored the usual way.
    if (ids === undefined || otherPhone !== null) return null;
    const { parentUserId, name: profileName, username } = item.sender;
    const made = { id: ids.contactId, wabaId, userId, waId, parentUserId, profileName, username, phones: [] };
    return { person: { contact: made, conversationId: ids.conversationId }, subscribers, isNew: true };
  }
  const conversation = contact.conversations.find((one) => one.phoneNumberId === item.phoneNumberId);
  if (others.length > 0 || conversation === undefined) return null;
  return { person: { contact, conversationId: conversation.id }, subscribers, isNew: false };
}

/** Whether no two of them are one person under two ids. */
function areDifferent(customers: readonly KnownCustomer[]): boolean {
  const ids = customers.flatMap(({ person }) => {
    if (person === null) return [];
    const { wabaId, userId, waId } = person.contact;
    return [
      ...(userId === null ? [] : [`${wabaId} user ${userId}`]),
      ...(waId === null ? [] : [`${wabaId} phone ${waId}`]),
    ];
  });
  return new Set(ids).size === ids.length;
}
