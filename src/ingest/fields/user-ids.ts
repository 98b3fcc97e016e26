import { findContacts } from '../../features/customers/customers.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { BatchCustomers } from '../senders/batch-customers.ts';
import { writeContacts } from '../senders/save-customers.ts';
import { readUserIds } from '../split/user-ids.ts';
import type { FieldValue } from './field-values.ts';

/** Customers who are known go on under the other user id that upstream reports. */
export async function applyUserIds(trx: Transaction, values: readonly FieldValue[]): Promise<void> {
  const changes = values.flatMap(({ wabaId, value }) =>
    readUserIds(value).map((change) => ({
      change: { ...change, wabaId },
      before: { wabaId, userId: change.previousUserId, waId: change.previousWaId },
      after: { wabaId, userId: change.userId, waId: change.waId },
    })),
  );
  if (changes.length === 0) return;
  const named = changes.flatMap(({ before, after }) => [before, after]);
  const customers = new BatchCustomers(await findContacts(trx, named));
  for (const { change, before, after } of changes)
    if ((customers.find(before) ?? customers.find(after)) !== undefined) customers.follow(change);
  await (await writeContacts(trx, customers, [])).done;
}
