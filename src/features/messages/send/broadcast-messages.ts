import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import { execute, queryOnly, queryValue } from '../../../platform/postgres/sql.ts';
import { cancelOpen, takeOpen } from './scheduled-messages.ts';

/** Messages of a broadcast that have their turn soon. They are few at a time, and no request brought them: they are not limited. */
export async function scheduleMessagesOf(
  trx: Transaction,
  { id: broadcastId, wabaId, phoneNumberId }: { id: string; wabaId: string; phoneNumberId: string },
  ids: readonly string[],
): Promise<void> {
  await execute(
    trx,
    `insert into scheduled_messages (message_id, waba_id, phone_number_id, send_at, broadcast_id)
     select id, :wabaId, :phoneNumberId, clock_timestamp(), :broadcastId from unnest(:ids::bigint[]) as id`,
    { broadcastId, wabaId, phoneNumberId, ids },
  );
}

/** A sent message stays sent, and an attempt that is under way ends as it does. */
export async function cancelMessagesOf(trx: Transaction, broadcastId: string): Promise<void> {
  await cancelOpen(trx, 'broadcast_id = :broadcastId', { broadcastId });
}

/** They draw their turns again, and are retried from now on: the pause is not their fault. */
export async function releaseMessagesOf(trx: Transaction, broadcastId: string): Promise<void> {
  const text = `update scheduled_messages set send_at = clock_timestamp(), paced_at = null
    where broadcast_id = :broadcastId and is_open`;
  await execute(trx, text, { broadcastId });
}

/** Up to `limit` that were queued and not sent, because the pass that would have sent them ended. */
export async function takeOpenOf(database: Database, broadcastId: string, limit: number): Promise<string[]> {
  return await takeOpen(database, 'sm.broadcast_id = :broadcastId', { broadcastId }, limit);
}

/** Messages of a broadcast whose sending has not begun. */
export async function countOpenOf(database: Database, broadcastId: string): Promise<number> {
  const text = `select cast(count(*) as integer) as n from scheduled_messages where broadcast_id = :broadcastId and is_open`;
  return (await queryOnly<{ n: number }>(database, text, { broadcastId })).n;
}

/** Null: the message is of no broadcast. */
export async function broadcastOfMessage(database: Database, messageId: string): Promise<string | null> {
  const text = 'select broadcast_id from scheduled_messages where message_id = :messageId';
  return await queryValue<string>(database, text, { messageId });
}
