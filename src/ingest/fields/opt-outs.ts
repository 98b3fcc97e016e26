import { findContacts } from '../../features/customers/customers.ts';
import { notePreferences, type PreferenceReport } from '../../features/customers/opt-outs.ts';
import { actualPhones } from '../../features/customers/phone-aliases.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { BatchCustomers } from '../senders/batch-customers.ts';
import { spellingsOf, writeContacts } from '../senders/save-customers.ts';
import type { Spelled } from '../split/item-context.ts';
import { readPreferences } from '../split/preferences.ts';
import type { StatusItem } from '../split/status-items.ts';
import type { Owned } from '../split/upstream-items.ts';
import { type FieldValue, notAfter } from './field-values.ts';

type Report = Spelled & Omit<PreferenceReport, 'contactId' | 'at'> & { at: Date | null };

/** The reports of the field `user_preferences`. */
export function preferenceReports(values: readonly FieldValue[]): Report[] {
  return values.flatMap(({ wabaId, phoneNumberId, value }) =>
    readPreferences(value).map((said): Report => {
      return { ...said, wabaId, phoneNumberId, otherPhone: null, source: 'upstream' };
    }),
  );
}

/** The reports of messages that upstream refused with 131050. */
export function refusedReports(statuses: readonly Owned<StatusItem>[]): Report[] {
  return statuses.map(({ item: { recipient, phoneNumberId, at }, wabaId }) => {
    return { ...recipient, wabaId, phoneNumberId, at, isStop: true, source: 'error_131050' };
  });
}

/** The wishes of customers who wrote a word of the tenant's. */
export function wordReports(owned: readonly Owned[]): Report[] {
  return owned.flatMap(({ item, wish, wabaId }): Report[] => {
    if (wish === undefined || item.kind !== 'message') return [];
    const { waId, userId, otherPhone } = item.sender;
    const { phoneNumberId, sentAt: at } = item;
    const person = { waId, userId, otherPhone, wabaId, phoneNumberId };
    return [{ ...person, at, isStop: wish === 'stop', source: 'keyword' }];
  });
}

/** Notes which customers stopped or resumed marketing; a person that a report names is a customer from then on. */
export async function applyPreferences(
  trx: Transaction,
  reports: readonly Report[],
  now: Date,
): Promise<void> {
  const named = reports.filter(({ waId, userId }) => waId !== null || userId !== null);
  if (named.length === 0) return;
  const people = await actualPhones(trx, named);
  const customers = new BatchCustomers(await findContacts(trx, people.flatMap(spellingsOf)));
  const nothing = { parentUserId: null, name: null, username: null };
  const found = people.map((person) => customers.see({ ...person, ...nothing }));
  const { done } = await writeContacts(trx, customers, []);
  await done;
  await notePreferences(
    trx,
    people.flatMap(({ wabaId, phoneNumberId, source, isStop, at }, index) => {
      const customer = found[index];
      const contactId = customer === undefined ? null : customers.current(customer).id;
      const time = notAfter(at, now);
      return contactId === null ? [] : [{ wabaId, phoneNumberId, contactId, source, isStop, at: time }];
    }),
  );
}
