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

type Named = { wabaId: string; waId: string | null; userId: string | null };

/** The contacts of actual people of one WABA, in their order, added where there are none; takes the lock of customers. */
export async function contactIdsOf(trx: Transaction, people: readonly Named[]): Promise<string[]> {
  const [first] = people;
  if (first === undefined) return [];
  await lockCustomers(trx, shardOf(first.wabaId));
  const known = new Map<string, string>();
  for (const { id, waId, userId } of await findContacts(trx, people))
    for (const name of [waId, userId]) if (name !== null) known.set(name, id);
  const unknown = [...new Map(people.map((one) => [nameOf(one), one]))].filter(([name]) => !known.has(name));
  const drawn = await drawIds(trx, unknown.length);
  const nothing = { parentUserId: null, profileName: null, username: null, phones: [] };
  const added = drawn.flatMap(({ contactId: id }, n) => {
    const [name, person] = unknown[n] ?? [];
    if (name === undefined || person === undefined) return [];
    known.set(name, id);
    return [{ id, ...person, ...nothing }];
  });
  await saveContacts(trx, added);
  return people.map((one) => known.get(nameOf(one)) ?? '');
}

function nameOf({ waId, userId }: Named): string {
  return waId ?? userId ?? '';
}
