import { shardOf } from '../../../engine/inbox/shards.ts';
import type { Transaction } from '../../../platform/postgres/database.ts';
import {
  type Activity,
  type ConversationPair,
  findContacts,
  lockKnownConversation,
  openConversations,
  saveContacts,
} from '../../customers/customers.ts';
import { lockCustomers } from '../../customers/customers-lock.ts';
import { actualPerson, contactIdsOf, type Person } from '../../customers/person.ts';
import { actualPhones, noteAliases } from '../../customers/phone-aliases.ts';
import { mergeCustomers } from '../messages.ts';

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
  activity: Activity = 'now',
): Promise<string> {
  if ('groupId' in recipient) {
    // Opened by the statement that locks it: nothing else has to be known of a group.
    const pair = { wabaId, phoneNumberId, partnerId: recipient.groupId };
    return await openedConversation(trx, 'group', pair, activity);
  }
  const known = await actualPerson(trx, wabaId, recipient);
  return (
    (await lockKnownConversation(trx, wabaId, phoneNumberId, known, activity)) ??
    (await openConversation(trx, wabaId, phoneNumberId, known, activity))
  );
}

/**
 * As `lockRecipientConversation`, of many people in their order, for messages that are sent later. With the lock of customers, so that no other
 * transaction locks more than one of these conversations meanwhile.
 */
export async function lockConversationsOf(
  trx: Transaction,
  wabaId: string,
  phoneNumberId: string,
  people: readonly Person[],
): Promise<string[]> {
  await lockCustomers(trx, shardOf(wabaId));
  const actual = await actualPhones(
    trx,
    people.map((person) => ({ wabaId, ...person })),
  );
  const contactIds = await contactIdsOf(trx, actual);
  const partnerIds = [...new Set(contactIds)];
  const pairs = partnerIds.map((partnerId) => ({ wabaId, phoneNumberId, partnerId }));
  const opened = await openConversations(trx, 'contact', pairs, 'later');
  const ids = new Map(opened.map(({ id, partnerId }) => [partnerId, id]));
  return contactIds.map((contactId) => ids.get(contactId) ?? '');
}

async function openedConversation(
  trx: Transaction,
  kind: 'contact' | 'group',
  pair: ConversationPair,
  activity: Activity,
): Promise<string> {
  const [conversation] = await openConversations(trx, kind, [pair], activity);
  if (conversation === undefined) throw new Error('the conversation was not opened');
  return conversation.id;
}

async function openConversation(
  trx: Transaction,
  wabaId: string,
  phoneNumberId: string,
  recipient: Person,
  activity: Activity,
): Promise<string> {
  const [partnerId = ''] = await contactIdsOf(trx, [{ wabaId, ...recipient }]);
  return await openedConversation(trx, 'contact', { wabaId, phoneNumberId, partnerId }, activity);
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
  else await mergeCustomers(trx, wabaId, actual.id, before.id);
}
