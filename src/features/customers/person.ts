import { shardOf } from '../../engine/inbox/shards.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import type { CustomerReference } from './customer-reference.ts';
import { drawIds, findContacts, saveContacts } from './customers.ts';
import { lockCustomers } from './customers-lock.ts';
import { actualPhones } from './phone-aliases.ts';

/** A phone (digits) or a business-scoped user id. */
export type Person = { waId: string; userId: null } | { waId: null; userId: string };

export function personOf(reference: CustomerReference): Person {
  return 'phone' in reference
    ? { waId: reference.phone, userId: null }
    : { waId: null, userId: reference.userId };
}

/** Upstream may know a phone under other digits; its responses showed which. */
export async function actualPerson(trx: Transaction, wabaId: string, person: Person): Promise<Person> {
  if (person.waId === null) return person;
  const [actual = person] = await actualPhones(trx, [{ wabaId, ...person }]);
  return { waId: actual.waId, userId: null };
}

/** The contact of an actual person, added where there is none; takes the lock of customers. */
export async function contactIdOf(trx: Transaction, wabaId: string, person: Person): Promise<string> {
  await lockCustomers(trx, shardOf(wabaId));
  const [contact] = await findContacts(trx, [{ wabaId, ...person }]);
  return contact?.id ?? (await addContact(trx, wabaId, person));
}

async function addContact(trx: Transaction, wabaId: string, person: Person): Promise<string> {
  const [drawn] = await drawIds(trx, 1);
  if (drawn === undefined) throw new Error('no contact id was drawn');
  const { contactId: id } = drawn;
  const nothing = { parentUserId: null, profileName: null, username: null, phones: [] };
  await saveContacts(trx, [{ id, wabaId, ...person, ...nothing }]);
  return id;
}
