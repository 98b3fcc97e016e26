import { shardOf } from '../../../engine/inbox/shards.ts';
import type { Transaction } from '../../../platform/postgres/database.ts';
import {
  type ConversationPair,
  drawIds,
  findContacts,
  lockKnownConversation,
  mergeContacts,
  openConversations,
  saveContacts,
} from '../../customers/customers.ts';
import { lockCustomers } from '../../customers/customers-lock.ts';
import { actualPhones, noteAliases } from '../../customers/phone-aliases.ts';

/** A phone (digits) or a business-scoped user id. */
type Person = { waId: string; userId: null } | { waId: null; userId: string };

export type Recipient = Person | { groupId: string };

/**
 * The conversation of a number with a recipient, opened if there is none, and locked until the transaction ends:
 * intake locks it as well before it draws message ids, so ids within a conversation are in the order of their commits
 * and a reader by ascending id misses none (docs/decisions/0021).
 *
 * Only a recipient without any message yet has to wait for intake.
 */
export async function lockRecipientConversation(
  trx: Transaction,
  wabaId: string,
  phoneNumberId: string,
  recipient: Recipient,
): Promise<string> {
  if ('groupId' in recipient)
    // Opened by the statement that locks it: nothing else has to be known of a group.
    return await openedConversation(trx, 'group', { wabaId, phoneNumberId, partnerId: recipient.groupId });
  const known = await actualRecipient(trx, wabaId, recipient);
  return (
    (await lockKnownConversation(trx, wabaId, phoneNumberId, known)) ??
    (await openConversation(trx, wabaId, phoneNumberId, known))
  );
}

async function openedConversation(
  trx: Transaction,
  kind: 'contact' | 'group',
  pair: ConversationPair,
): Promise<string> {
  const [conversation] = await openConversations(trx, kind, [pair]);
  if (conversation === undefined) throw new Error('the conversation was not opened');
  return conversation.id;
}

/** Upstream may know a phone under other digits; its responses showed which. */
async function actualRecipient(trx: Transaction, wabaId: string, recipient: Person): Promise<Person> {
  if (recipient.waId === null) return recipient;
  const [actual = recipient] = await actualPhones(trx, [{ wabaId, ...recipient }]);
  return { waId: actual.waId, userId: null };
}

async function openConversation(
  trx: Transaction,
  wabaId: string,
  phoneNumberId: string,
  recipient: Person,
): Promise<string> {
  await lockCustomers(trx, shardOf(wabaId));
  const [contact] = await findContacts(trx, [{ wabaId, ...recipient }]);
  const partnerId = contact?.id ?? (await addContact(trx, wabaId, recipient));
  return await openedConversation(trx, 'contact', { wabaId, phoneNumberId, partnerId });
}

async function addContact(trx: Transaction, wabaId: string, recipient: Person): Promise<string> {
  const [drawn] = await drawIds(trx, 1);
  if (drawn === undefined) throw new Error('no contact id was drawn');
  const { contactId: id } = drawn;
  const nothing = { parentUserId: null, profileName: null, username: null, phones: [] };
  await saveContacts(trx, [{ id, wabaId, ...recipient, ...nothing }]);
  return id;
}

/**
 * Notes that upstream knows a phone under other digits, so that the customer's answers, which come under those, meet
 * the conversation that the message was put into.
 */
export async function followPhoneAlias(
  trx: Transaction,
  wabaId: string,
  phone: string,
  waId: string,
): Promise<void> {
  await lockCustomers(trx, shardOf(wabaId));
  await noteAliases(trx, [{ wabaId, phone, waId }]);
  const found = await findContacts(trx, [
    { wabaId, waId: phone, userId: null },
    { wabaId, waId, userId: null },
  ]);
  const before = found.find((contact) => contact.waId === phone);
  const actual = found.find((contact) => contact.waId === waId);
  if (before === undefined) return;
  if (actual === undefined) await saveContacts(trx, [{ ...before, waId }]);
  else await mergeContacts(trx, wabaId, actual.id, before.id);
}
