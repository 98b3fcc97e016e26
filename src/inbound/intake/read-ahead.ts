import { type ContactWithConversations, type DrawnIds, drawIds } from '../../customers/customers.ts';
import { endpointsOfWabas, type Subscriber } from '../../endpoints/endpoint-settings.ts';
import { type Database, LastStatements } from '../../platform/postgres/database.ts';
import { findCustomers } from '../customers/save-customers.ts';
import type { MessageItem, Owned } from '../split/upstream-items.ts';
import {
  type FindCustomer,
  type KnownCustomer,
  type KnownCustomers,
  saysNothingNew,
  senderKeyOf,
} from './known-customers.ts';

/**
 * Reads, without any lock, what is not remembered of the senders of these messages. Who never wrote gets ids, under which the
 * one statement stores contact and conversation. Null where a message changes a customer, which takes the usual way.
 */
export async function readAhead(
  database: Database,
  customers: KnownCustomers,
  messages: readonly Owned<MessageItem>[],
): Promise<FindCustomer | null> {
  const unknown = messages.filter((one) => customers.find(one) === null);
  if (unknown.length === 0) return (one) => customers.find(one);
  const bySender = new Map(unknown.map((one) => [senderKeyOf(one), one]));
  const wabaIds = [...new Set(unknown.map(({ wabaId }) => wabaId))];
  const [contacts, drawn, endpoints] = await database.transaction(
    async (trx) =>
      new LastStatements(
        Promise.all([
          findCustomers(trx, unknown),
          drawIds(trx, bySender.size),
          endpointsOfWabas(trx, wabaIds),
        ]),
      ),
  );
  const found = new Map<string, KnownCustomer>();
  for (const [key, one] of bySender) {
    const customer = customerOf(one, { contacts, endpoints, ids: drawn[found.size] });
    if (customer === null) return null;
    found.set(key, customer);
    if (!customer.isNew) customers.add(one, customer);
  }
  if (!areDifferent([...found.values()].filter(({ isNew }) => isNew))) return null;
  return (one) => {
    const customer = found.get(senderKeyOf(one));
    if (customer === undefined) return customers.find(one);
    return saysNothingNew(one.item, customer.contact) ? customer : null;
  };
}

type Read = {
  contacts: readonly ContactWithConversations[];
  endpoints: readonly Subscriber[];
  ids: DrawnIds | undefined;
};

/** Null where the message is about several contacts, or opens a conversation of a contact that is there. */
function customerOf(
  { item: { sender, phoneNumberId }, wabaId }: Owned<MessageItem>,
  { contacts, endpoints, ids }: Read,
): KnownCustomer | null {
  const { userId, waId, parentUserId, name: profileName, username } = sender;
  const [contact, ...others] = contacts.filter(
    (one) =>
      one.wabaId === wabaId &&
      ((userId !== null && one.userId === userId) || (waId !== null && one.waId === waId)),
  );
  const subscribers = endpoints.filter((one) => one.wabaId === wabaId);
  if (contact === undefined) {
    if (ids === undefined) return null;
    const made = { id: ids.contactId, wabaId, userId, waId, parentUserId, profileName, username };
    return { contact: made, conversationId: ids.conversationId, subscribers, isNew: true };
  }
  const conversation = contact.conversations.find((one) => one.phoneNumberId === phoneNumberId);
  if (others.length > 0 || conversation === undefined) return null;
  return { contact, conversationId: conversation.id, subscribers, isNew: false };
}

/** Whether no two of them are one person under two ids. */
function areDifferent(customers: readonly KnownCustomer[]): boolean {
  const ids = customers.flatMap(({ contact: { wabaId, userId, waId } }) => [
    ...(userId === null ? [] : [`${wabaId} user ${userId}`]),
    ...(waId === null ? [] : [`${wabaId} phone ${waId}`]),
  ]);
  return new Set(ids).size === ids.length;
}
