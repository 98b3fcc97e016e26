import { noteThreads, type ThreadReport } from '../../features/customers/threads.ts';
import { insertAppMessages } from '../../features/messages/app-messages.ts';
import { noteCopiedStates } from '../../features/messages/statuses.ts';
import type { Transaction } from '../../platform/postgres/database.ts';
import { conversationsWith } from '../senders/customer-conversations.ts';
import { readHandover } from '../split/handovers.ts';
import { readCopiedStatuses, readCopies } from '../split/standby.ts';
import { saveAppMedia } from './app-media.ts';
import { type FieldValue, notAfter } from './field-values.ts';

/** Puts copies of what another responder has into their conversations; never in place of what is ours. */
export async function applyStandby(
  trx: Transaction,
  values: readonly FieldValue[],
  now: Date,
): Promise<void> {
  const of = ({ wabaId, phoneNumberId }: FieldValue) => ({ wabaId, phoneNumberId });
  const copies = values.flatMap((one) => readCopies(one.value).map((copy) => ({ ...copy, ...of(one) })));
  await noteCopiedStates(
    trx,
    values.flatMap((one) => readCopiedStatuses(one.value).map((status) => ({ ...status, ...of(one) }))),
  );
  if (copies.length === 0) return;
  const seen = copies.map(({ customer, wabaId, phoneNumberId }) => ({ ...customer, wabaId, phoneNumberId }));
  const conversations = await conversationsWith(trx, seen, { isActivity: true });
  await insertAppMessages(
    trx,
    copies.map(({ rawJson: content, customer: _customer, media: _media, sentAt, ...copy }, index) => ({
      ...copy,
      content,
      sentAt: notAfter(sentAt, now),
      conversationId: conversations[index] ?? '',
      origin: 'other_responder' as const,
    })),
  );
  await saveAppMedia(trx, copies);
}

/** Notes who has the conversations of which upstream reports that control was passed or taken. */
export async function applyHandovers(
  trx: Transaction,
  values: readonly FieldValue[],
  now: Date,
): Promise<void> {
  const handovers = values.flatMap(({ wabaId, phoneNumberId, value }) => {
    const handover = readHandover(value);
    return handover === null ? [] : [{ ...handover, wabaId, phoneNumberId }];
  });
  if (handovers.length === 0) return;
  const conversations = await conversationsWith(trx, handovers, { isActivity: false });
  const reports = handovers.map(
    ({ owner, role, at }, index): ThreadReport => ({
      conversationId: conversations[index] ?? '',
      owner,
      role,
      since: notAfter(at, now),
    }),
  );
  await noteThreads(trx, reports);
}
