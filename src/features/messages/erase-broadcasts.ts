import type { ErasedTable, NamedIn } from '../../platform/erasing.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute } from '../../platform/postgres/sql.ts';

/** Only those that have ended or were never started, with their recipients. */
export async function forgetBroadcasts(database: Database, ids: readonly string[]): Promise<void> {
  await execute(
    database,
    `delete from broadcasts where id = any (cast(:ids as bigint[])) and state in ('draft', 'done', 'cancelled')`,
    { ids },
  );
}

export const BROADCASTS: ErasedTable = { table: 'broadcasts', count: 'broadcasts', key: 'id' };

export const BROADCASTS_NAMED_IN: NamedIn = [['broadcasts', 'requested_by']];

export const BROADCAST_RECIPIENTS: ErasedTable = {
  table: 'broadcast_recipients',
  count: 'broadcastRecipients',
  key: 'broadcast_id, id',
};

/** Of customers with these ids, also those that have no message yet. */
export async function eraseRecipients(
  trx: Transaction,
  wabaId: string,
  recipients: readonly string[],
): Promise<number> {
  return await execute(
    trx,
    'delete from broadcast_recipients where waba_id = :wabaId and recipient = any (cast(:recipients as text[]))',
    { wabaId, recipients },
  );
}

export async function eraseRecipientsOf(trx: Transaction, messageIds: readonly string[]): Promise<number> {
  return await execute(
    trx,
    'delete from broadcast_recipients where message_id = any (cast(:messageIds as bigint[]))',
    { messageIds },
  );
}
