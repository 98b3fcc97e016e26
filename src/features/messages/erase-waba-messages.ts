import type { ErasedTable, FoundFile } from '../../platform/erasing.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { rememberErased, stopDownloadsWhere, stopSendsWhere } from './erase-messages.ts';

const OF_NUMBERS = { numbers: true };

export const MESSAGE_TABLES = {
  orders: { table: 'orders', count: 'orders', key: 'id' },
  idempotencyKeys: { table: 'idempotency_keys', count: 'idempotencyKeys', key: 'waba_id, operation, key' },
  sends: { table: 'outbound_messages', count: 'sends', key: 'message_id' },
  statuses: {
    table: 'message_statuses',
    count: 'statuses',
    ...OF_NUMBERS,
    key: 'phone_number_id, upstream_id, status, participant',
  },
  states: { table: 'message_states', count: 'states', key: 'phone_number_id, upstream_id', ...OF_NUMBERS },
  paymentReports: { table: 'payment_reports', count: 'paymentReports', key: 'event_uuid' },
  catalogProducts: {
    table: 'catalog_products',
    count: 'catalogProducts',
    key: 'waba_id, catalog_id, retailer_id',
  },
  usageChanges: { table: 'usage_changes', count: 'usageDays', key: 'id' },
  usageDays: {
    table: 'usage_days',
    count: 'usageDays',
    key: 'waba_id, day, phone_number_id, category, pricing_type, country',
  },
  pacing: { table: 'send_pacing', count: 'pacing', key: 'phone_number_id, recipient', ...OF_NUMBERS },
} as const satisfies Record<string, ErasedTable>;

/** Throws NotYetErased while a message is being sent. */
export async function stopMessagesOfWaba(database: Database, wabaId: string): Promise<void> {
  await stopDownloadsWhere(database, 'waba_id = :wabaId', { wabaId });
  await stopSendsWhere(database, 'waba_id = :wabaId', { wabaId });
}

export async function filesOfWaba(database: Database, wabaId: string, limit: number): Promise<FoundFile[]> {
  const text =
    'select message_id as id, object_key as key from media where waba_id = :wabaId order by message_id limit :limit';
  return await query<FoundFile>(database, text, { wabaId, limit });
}

export async function uploadsOfWaba(
  database: Database,
  wabaId: string,
  limit: number,
  which: 'all' | 'given up' = 'all',
): Promise<FoundFile[]> {
  return await query<FoundFile>(
    database,
    `select id, object_key as key from media_uploads
      where waba_id = :wabaId ${which === 'all' ? '' : `and state = 'deleted'`} order by id limit :limit`,
    { wabaId, limit },
  );
}

/** Nothing says any more whose files they were. Returns how many. */
export async function eraseFilesOfWaba(trx: Transaction, messageIds: readonly string[]): Promise<number> {
  return await execute(
    trx,
    `with gone as (delete from media where message_id = any (:messageIds::bigint[]) returning message_id, object_key)
     insert into erased_files (message_id, object_key) select * from gone
     on conflict (message_id) do update set waba_id = null`,
    { messageIds },
  );
}

export async function eraseUploads(trx: Transaction, uploadIds: readonly string[]): Promise<number> {
  return await execute(trx, 'delete from media_uploads where id = any (:uploadIds::uuid[])', { uploadIds });
}

/** Remembers them by a hash; returns how many. */
export async function eraseMessagesOfWaba(trx: Transaction, wabaId: string, limit: number): Promise<number> {
  const gone = await query<{ phoneNumberId: string; name: string | null }>(
    trx,
    `delete from messages where id = any (array(
       select m.id from conversations c cross join lateral (
         select id from messages x where x.conversation_id = c.id limit :limit) as m
        where c.waba_id = :wabaId limit :limit))
     returning phone_number_id as "phoneNumberId", coalesce(upstream_id, superseded_upstream_id) as name`,
    { wabaId, limit },
  );
  await rememberErased(
    trx,
    gone.flatMap(({ phoneNumberId, name }) => (name === null ? [] : [{ phoneNumberId, name }])),
  );
  return gone.length;
}
