import { noteCalls } from '../../features/customers/customers.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { conversationsWith } from '../senders/customer-conversations.ts';
import { readCalls } from '../split/calls.ts';
import { type FieldValue, notAfter } from './field-values.ts';

/** Opens the customer service window of who called; a caller without a conversation has one from then on. */
export async function applyCalls(trx: Transaction, values: readonly FieldValue[], now: Date): Promise<void> {
  const calls = values.flatMap(({ wabaId, phoneNumberId, value }) =>
    readCalls(value).map((call) => ({ ...call, wabaId, phoneNumberId })),
  );
  if (calls.length === 0) return;
  const conversations = await conversationsWith(trx, calls, { isActivity: false });
  await noteCalls(
    trx,
    calls.map(({ at }, index) => ({
      conversationId: conversations[index] ?? '',
      at: notAfter(at, now),
    })),
  );
}
