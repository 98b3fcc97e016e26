import {
  type ConversationPair,
  findContacts,
  findConversations,
  openConversations,
} from '../../features/customers/customers.ts';
import { actualPhones } from '../../features/customers/phone-aliases.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import type { PersonIds, Sender } from '../split/item-context.ts';
import { keyOf } from './batch-conversations.ts';
import { BatchCustomers } from './batch-customers.ts';
import { writeContacts } from './save-customers.ts';

export type SeenCustomer = PersonIds & Partial<Sender> & { wabaId: string; phoneNumberId: string };

/**
 * The conversations of customers, opened where there are none, in the order of `seen`. The caller holds the lock of
 * customers (locks.ts). `isActivity`: something was said in them, so they move to the top and stay locked.
 */
export async function conversationsWith(
  trx: Transaction,
  seen: readonly SeenCustomer[],
  { isActivity }: { isActivity: boolean },
): Promise<string[]> {
  const known = await actualPhones(trx, seen);
  const customers = new BatchCustomers(await findContacts(trx, known));
  const nothing = { parentUserId: null, name: null, username: null, otherPhone: null };
  const found = known.map((one) => customers.see({ ...nothing, ...one }));
  const { done } = await writeContacts(trx, customers, []);
  await done;
  const pairs = known.map(({ wabaId, phoneNumberId }, index): ConversationPair => {
    const customer = found[index];
    const partnerId = customer === undefined ? null : customers.current(customer).id;
    return { wabaId, phoneNumberId, partnerId: partnerId ?? '' };
  });
  const distinct = [...new Map(pairs.map((pair) => [keyOf(pair), pair])).values()];
  const there = isActivity ? [] : await findConversations(trx, 'contact', distinct);
  const thereKeys = new Set(there.map(keyOf));
  const missing = distinct.filter((pair) => !thereKeys.has(keyOf(pair)));
  const opened = await openConversations(trx, 'contact', missing);
  const ids = new Map([...there, ...opened].map((row) => [keyOf(row), row.id]));
  return pairs.map((pair) => ids.get(keyOf(pair)) ?? '');
}
