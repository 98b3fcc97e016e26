import { type Audited, recordChange } from '../../../platform/audit/audit.ts';
import type { Database, Transaction } from '../../../platform/postgres/database.ts';
import {
  type Bindings,
  execute,
  query,
  queryColumn,
  queryOne,
  queryOnly,
  queryValue,
} from '../../../platform/postgres/sql.ts';
import { RateLimitError, RequestError } from '../../../platform/request-input.ts';
import { dropUnstarted, holdTasks, moveTask } from '../../../platform/temporal/workflow-tasks.ts';
import { takeRoom } from './schedule-room.ts';
import type { SendError } from './send-error.ts';
import { SENT_WITHIN_MS, scheduledSummary, sendWorkflowId } from './send-task.ts';
import { readSendTimes, type SendTimes } from './send-times.ts';

const MOST_SCHEDULED = 100_000;
const RETRY_AFTER_MS = 60_000;

type NewSchedule = SendTimes & { id: string; wabaId: string; phoneNumberId: string };

/** `database` is that of the transaction. Throws RateLimitError `too_many_scheduled`. */
export async function insertSchedule(
  trx: Transaction,
  database: Database,
  schedule: NewSchedule,
): Promise<void> {
  const { wabaId } = schedule;
  const count = async () =>
    (await queryValue<number>(
      trx,
      `select count(*)::integer from (select from scheduled_messages where waba_id = :wabaId and is_open limit ${MOST_SCHEDULED}) as open`,
      { wabaId },
    )) ?? 0;
  if (!(await takeRoom(database, { wabaId, most: MOST_SCHEDULED }, count))) {
    const most = MOST_SCHEDULED.toLocaleString('en-US');
    const message = `The WABA has ${most} scheduled messages already.`;
    throw new RateLimitError(message, RETRY_AFTER_MS, 'too_many_scheduled');
  }
  await execute(
    trx,
    `insert into scheduled_messages (message_id, waba_id, phone_number_id, send_at, not_after)
     values (:id, :wabaId, :phoneNumberId, :sendAt, :notAfter)`,
    schedule,
  );
}

/** Its sending has begun, or it has failed. */
export async function closeSchedule(trx: Transaction, messageId: string): Promise<void> {
  const text = 'update scheduled_messages set is_open = false where message_id = :messageId and is_open';
  await execute(trx, text, { messageId });
}

/** It went back before upstream took it, and draws another turn. */
export async function reopenSchedule(trx: Transaction, messageId: string): Promise<void> {
  const text = 'update scheduled_messages set is_open = true, paced_at = null where message_id = :messageId';
  await execute(trx, text, { messageId });
}

/**
 * Up to `limit` messages that a process sends itself and whose sending has not begun; `which` is SQL over `scheduled_messages sm`. Should this process
 * die, their workflows go on with each within a minute.
 */
export async function takeOpen(
  database: Database,
  which: string,
  bindings: Bindings,
  limit: number,
): Promise<string[]> {
  const ids = await queryColumn<string>(
    database,
    `select sm.message_id from scheduled_messages sm
       join workflow_tasks t on t.workflow_id = '${sendWorkflowId('')}' || sm.message_id
      where sm.is_open and ${which} and t.starts = 0 and t.starts_at is null and t.next_start_at > now()
      order by sm.message_id limit :limit`,
    { ...bindings, limit },
  );
  await holdTasks(database, ids.map(sendWorkflowId), SENT_WITHIN_MS);
  return ids;
}

/** SQL over `outbound_messages o` and `scheduled_messages sm`: how far a message is, for tenants. */
export const SHOWN_STATE = `case when sm.cancelled_at is not null then 'cancelled'
  when sm.is_open and o.state = 'queued' then 'scheduled' else o.state end`;

export type ScheduledMessage = {
  id: string;
  conversationId: string;
  phoneNumberId: string;
  type: string;
  sendAt: Date;
  notAfter: Date | null;
  createdAt: Date;
  /** Digits of a phone, a user id, or the id of a group. */
  recipient: string;
  /** JSON text. */
  content: string;
};

const COLUMNS = `sm.message_id as id, m.conversation_id as "conversationId", sm.phone_number_id as "phoneNumberId", m.type,
  sm.send_at as "sendAt", sm.not_after as "notAfter", m.created_at as "createdAt", o.recipient, m.content`;

const JOINED = `scheduled_messages sm join outbound_messages o on o.message_id = sm.message_id
  join messages m on m.id = sm.message_id`;

type ScheduledFilter = { phoneNumberId: string | null; conversationId?: string };

/** Those that were not sent yet, the next one first; `after`: the time in ISO 8601 and the id of the last one before. */
export async function listScheduled(
  database: Database,
  wabaId: string,
  { phoneNumberId, conversationId }: ScheduledFilter,
  { after, limit }: { after: readonly string[]; limit: number },
): Promise<ScheduledMessage[]> {
  const [afterAt = null, afterId = null] = after;
  const conditions = [
    ...(afterAt === null
      ? []
      : ['and (sm.send_at, sm.message_id) > (:afterAt::timestamptz, :afterId::bigint)']),
    ...(phoneNumberId === null ? [] : ['and sm.phone_number_id = :phoneNumberId']),
    ...(conversationId === undefined ? [] : ['and m.conversation_id = :conversationId::bigint']),
  ];
  return await query<ScheduledMessage>(
    database,
    `select ${COLUMNS} from ${JOINED}
      where sm.waba_id = :wabaId and sm.is_open and sm.broadcast_id is null and o.state = 'queued' ${conditions.join(' ')}
      order by sm.send_at, sm.message_id limit :limit`,
    { wabaId, phoneNumberId, conversationId: conversationId ?? null, afterAt, afterId, limit },
  );
}

/** Null: the WABA has no such message, or it is not scheduled any more. */
export async function findScheduled(
  database: Database,
  wabaId: string,
  messageId: string,
): Promise<ScheduledMessage | null> {
  return await queryOne<ScheduledMessage>(
    database,
    `select ${COLUMNS} from ${JOINED}
      where sm.message_id = :messageId and sm.waba_id = :wabaId and sm.is_open and sm.broadcast_id is null and o.state = 'queued'`,
    { messageId, wabaId },
  );
}

type Asking = { database: Database } & Audited;

const CANCELLED: SendError = {
  code: 'cancelled',
  message: 'The message was cancelled before it was sent.',
  upstream: null,
};

/** Ends those whose sending has not begun, and returns how many; `which` is SQL over `scheduled_messages`. */
export async function cancelOpen(trx: Transaction, which: string, bindings: Bindings): Promise<number> {
  // Messages before schedules, as an attempt locks them.
  const ended = await queryColumn<string>(
    trx,
    `update outbound_messages set state = 'failed', error = :error, finished_at = now()
      where state = 'queued' and message_id in (select message_id from scheduled_messages where is_open and ${which})
     returning message_id`,
    { ...bindings, error: JSON.stringify(CANCELLED) },
  );
  await execute(
    trx,
    `update scheduled_messages set is_open = false, cancelled_at = now() where message_id = any (cast(:ended as bigint[]))`,
    { ended },
  );
  await dropUnstarted(trx, ended.map(sendWorkflowId));
  return ended.length;
}

/** What a key scheduled and is not sent yet. Returns how many there were. */
export async function cancelScheduledOfKey(trx: Transaction, wabaId: string, keyId: string): Promise<number> {
  const ofKey = `waba_id = :wabaId and broadcast_id is null and (
    select k.api_key_id from outbound_messages k where k.message_id = scheduled_messages.message_id) = cast(:keyId as bigint)`;
  return await cancelOpen(trx, ofKey, { wabaId, keyId });
}

/** Null: the WABA has no such message. Throws RequestError `message_not_scheduled`. */
export async function cancelScheduled(
  { database, actor }: Asking,
  wabaId: string,
  messageId: string,
): Promise<ScheduledMessage | null> {
  return await database.transaction(async (trx) => {
    const scheduled = await lockScheduled(trx, wabaId, messageId);
    if (scheduled === null) return null;
    await cancelOpen(trx, 'message_id = :messageId', { messageId });
    // Its workflow starts now, and ends.
    await moveTask(trx, sendWorkflowId(messageId), { startsAt: null, summary: null });
    const about = { wabaId, target: `message ${messageId}`, detail: {} };
    await recordChange(trx, actor, { ...about, action: 'message.cancelled' });
    return scheduled;
  });
}

/** Without a `notAfter` a former one keeps its distance. Null: the WABA has no such message. Throws RequestError: `invalid_value`, `message_not_scheduled`. */
export async function moveScheduled(
  { database, actor }: Asking,
  wabaId: string,
  messageId: string,
  given: { sendAt: string; notAfter?: string },
  now = Date.now(),
): Promise<ScheduledMessage | null> {
  return await database.transaction(async (trx) => {
    const former = await lockScheduled(trx, wabaId, messageId);
    if (former === null) return null;
    const times = readSendTimes(given, now);
    if (times === null) throw new Error('a move has a time');
    const { sendAt, notAfter } = times;
    const { notAfter: kept } = await queryOnly<{ notAfter: Date | null }>(
      trx,
      `update scheduled_messages
          set send_at = :sendAt, not_after = coalesce(:notAfter::timestamptz, not_after + (:sendAt::timestamptz - send_at)), paced_at = null
        where message_id = :messageId returning not_after as "notAfter"`,
      { messageId, sendAt, notAfter },
    );
    await moveTask(trx, sendWorkflowId(messageId), { startsAt: sendAt, summary: scheduledSummary(sendAt) });
    const detail = { sendAt: sendAt.toISOString() };
    const about = { wabaId, target: `message ${messageId}`, detail };
    await recordChange(trx, actor, { ...about, action: 'message.moved' });
    return { ...former, sendAt, notAfter: kept };
  });
}

/** Waits for an attempt that begins, which locks the message too: one of the two comes first. */
async function lockScheduled(
  trx: Transaction,
  wabaId: string,
  messageId: string,
): Promise<ScheduledMessage | null> {
  await execute(
    trx,
    'select 1 from outbound_messages where message_id = :messageId and waba_id = :wabaId for update',
    { messageId, wabaId },
  );
  const scheduled = await findScheduled(trx, wabaId, messageId);
  if (scheduled !== null) return scheduled;
  const known = await queryOne(trx, 'select 1 from messages where id = :messageId and waba_id = :wabaId', {
    messageId,
    wabaId,
  });
  if (known === null) return null;
  throw new RequestError('message_not_scheduled', 'The message is not scheduled, or no longer.');
}
