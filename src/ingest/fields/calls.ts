import { noteCalls } from '../../features/customers/customers.ts';
import { saveCalls } from '../../features/messages/calls.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { conversationsWith } from '../senders/customer-conversations.ts';
import { readCallItems, readCalls } from '../split/calls.ts';
import { type FieldValue, notAfter } from './field-values.ts';

/** Notes the calls in their conversations, and opens the customer service window of who called. */
export async function applyCalls(trx: Transaction, values: readonly FieldValue[], now: Date): Promise<void> {
  const of = ({ wabaId, phoneNumberId }: FieldValue) => ({ wabaId, phoneNumberId });
  const reports = values.flatMap((one) => readCallItems(one.value).map((call) => ({ ...call, ...of(one) })));
  const calls = values.flatMap((one) => readCalls(one.value).map((call) => ({ ...call, ...of(one) })));
  if (reports.length + calls.length === 0) return;
  const seen = [...reports, ...calls].map(({ waId, userId, wabaId, phoneNumberId }) => {
    return { waId, userId, wabaId, phoneNumberId };
  });
  const conversations = await conversationsWith(trx, seen, { isActivity: false });
  const conversationAt = (index: number) => conversations[index] ?? '';
  await saveCalls(
    trx,
    reports.map(({ waId: _waId, userId: _userId, at, ...call }, index) => ({
      ...call,
      at: at === null ? null : notAfter(at, now),
      conversationId: conversationAt(index),
    })),
  );
  await noteCalls(
    trx,
    calls.map(({ at }, index) => ({
      conversationId: conversationAt(reports.length + index),
      at: notAfter(at, now),
    })),
  );
}
