import { mediaReadyEventId } from '../../engine/deliveries/envelope.ts';
import { type ErasedEvent, eraseEvents, quietEvents } from '../../engine/deliveries/erase-events.ts';
import { laneOf } from '../../engine/deliveries/lanes.ts';
import { eraseOrderingKeys } from '../../engine/queue/ordering-keys.ts';
import {
  type ErasureCounts,
  type FoundFile,
  NotYetErased,
  removeFound,
  sumOf,
} from '../../platform/erasing.ts';
import type { ObjectStore } from '../../platform/object-store/object-store.ts';
import { columnsOf } from '../../platform/postgres/arrays.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { type Bindings, deleteUpTo, execute, query, queryColumn } from '../../platform/postgres/sql.ts';
import { deleteTasks, findTasks } from '../../platform/temporal/workflow-tasks.ts';
import { eraseRecipientsOf } from './erase-broadcasts.ts';
import type { ErasedMessage } from './erased-messages.ts';
import { mediaWorkflowId } from './media/media.ts';
import { erasedKey, erasedName, localMessageId } from './messages.ts';
import { orderWorkflowId } from './orders/orders.ts';
import { sendWorkflowId } from './send/send-task.ts';
import { sendMarker } from './statuses.ts';

type MessageTools = Parameters<typeof quietEvents>[0] & { objectStore: Pick<ObjectStore, 'remove'> };

function namesOf({ id, upstreamId, supersededId }: ErasedMessage): string[] {
  const upstream = [upstreamId, supersededId].filter((name) => name !== null);
  return [...new Set([...upstream, localMessageId(id)])];
}

function namedBy(messages: readonly ErasedMessage[]): (ErasedMessage & { name: string })[] {
  return messages.flatMap((message) => namesOf(message).map((name) => ({ ...message, name })));
}

async function eventsOf(
  database: Database,
  wabaId: string,
  messages: readonly ErasedMessage[],
): Promise<ErasedEvent[]> {
  const names = messages.flatMap(namesOf).flatMap((name) => [name, mediaReadyEventId(name)]);
  return await query<ErasedEvent>(
    database,
    `select day, id from events
      where waba_id = :wabaId and event_id = any (cast(:names as text[])) and phone_number_id = any (cast(:numbers as text[]))
     union
     select event_day, event_uuid from orders where message_id = any (cast(:ids as bigint[]))`,
    {
      wabaId,
      names,
      ids: messages.map(({ id }) => id),
      numbers: [...new Set(messages.map(({ phoneNumberId }) => phoneNumberId))],
    },
  );
}

/** Throws NotYetErased while a message is being sent. */
export async function stopSends(database: Database, messages: readonly ErasedMessage[]): Promise<void> {
  const ids = messages.map(({ id }) => id);
  await stopSendsWhere(database, 'message_id = any (:ids::bigint[])', { ids });
}

/** `which` is SQL. Throws NotYetErased while a message is being sent. */
export async function stopSendsWhere(database: Database, which: string, bindings: Bindings): Promise<void> {
  await execute(
    database,
    `update outbound_messages set state = 'failed', finished_at = now() where ${which} and state = 'queued'`,
    bindings,
  );
  const sending = await query(
    database,
    `select 1 from outbound_messages where ${which} and state = 'sending' and sending_until > (select clock_timestamp()) limit 1`,
    bindings,
  );
  if (sending.length > 0) throw new NotYetErased('A message is being sent.');
}

export async function stopDownloadsWhere(
  database: Database,
  which: string,
  bindings: Bindings,
): Promise<void> {
  await execute(
    database,
    `update media set state = 'failed', error_code = 'media_erased', finished_at = now()
      where ${which} and state = 'pending'`,
    bindings,
  );
}

/** Stops sends, downloads and deliveries, and removes files. Throws NotYetErased while a message is being sent or an event attempted. */
export async function quietMessages(
  tools: MessageTools,
  wabaId: string,
  messages: readonly ErasedMessage[],
): Promise<void> {
  if (messages.length === 0) return;
  const { database, cancelWorkflows } = tools;
  const ids = messages.map(({ id }) => id);
  await stopSends(database, messages);
  await stopDownloadsWhere(database, 'message_id = any (:ids::bigint[])', { ids });
  const tasks = await findTasks(database, tasksOf(ids));
  await cancelWorkflows([...tasks]);
  await removeFilesOf(tools, messages);
  await quietEvents(tools, await eventsOf(database, wabaId, messages));
}

/** Throws NotYetErased while the store is away. */
export async function removeFilesOf(
  { database, objectStore }: Pick<MessageTools, 'database' | 'objectStore'>,
  messages: readonly ErasedMessage[],
): Promise<void> {
  const files = await query<FoundFile>(
    database,
    'select message_id as id, object_key as key from media where message_id = any (:ids::bigint[])',
    { ids: messages.map(({ id }) => id) },
  );
  await removeFound(objectStore, files);
}

function tasksOf(messageIds: readonly string[]): string[] {
  return messageIds.flatMap((id) => [mediaWorkflowId(id), sendWorkflowId(id)]);
}

export async function eraseMessages(
  trx: Transaction,
  wabaId: string,
  messages: readonly ErasedMessage[],
  { uploads = 'go' }: { uploads?: 'go' | 'stay' } = {},
): Promise<ErasureCounts> {
  if (messages.length === 0) return {};
  const ids = messages.map(({ id }) => id);
  const ofEvents = await eraseEventsAndPayments(trx, wabaId, await eventsOf(trx, wabaId, messages));
  const named = namedBy(messages);
  const lanes = named.map(({ name }) => laneOf(name));
  const orderingKeys = await eraseOrderingKeys(trx, wabaId, lanes);
  const statuses = await eraseStatuses(trx, named);
  const orders = await queryColumn<string>(
    trx,
    'delete from orders where message_id = any (:ids::bigint[]) returning id',
    { ids },
  );
  const files = await eraseMediaRows(trx, ids);
  if (uploads === 'go') await giveUpUploads(trx, wabaId, ids);
  const keys = 'delete from idempotency_keys where waba_id = :wabaId and message_id = any (:ids::bigint[])';
  const idempotencyKeys = await execute(trx, keys, { wabaId, ids });
  const broadcastRecipients = await eraseRecipientsOf(trx, ids);
  const workflowIds = [...tasksOf(ids), ...orders.map(orderWorkflowId)];
  await deleteTasks(trx, workflowIds);
  await rememberMessages(trx, messages);
  const gone = await execute(trx, 'delete from messages where id = any (:ids::bigint[])', { ids });
  return sumOf(ofEvents, {
    orderingKeys,
    statuses,
    orders: orders.length,
    files,
    idempotencyKeys,
    broadcastRecipients,
    messages: gone,
  });
}

/** A salted hash is kept: intake drops what upstream says of the messages from then on. */
export async function rememberMessages(trx: Transaction, messages: readonly ErasedMessage[]): Promise<void> {
  // Of a send without a response upstream's id may still become known, by our mark in a status.
  const marks = messages
    .filter(({ upstreamId }) => upstreamId === null)
    .map((one) => ({ ...one, name: sendMarker(one.id) }));
  await rememberErased(trx, [...namedBy(messages), ...marks]);
}

async function eraseStatuses(
  trx: Transaction,
  named: readonly { phoneNumberId: string; name: string }[],
): Promise<number> {
  const values = columnsOf(named, 'phoneNumberId', 'name');
  const which =
    '(phone_number_id, upstream_id) in (select * from unnest(:phoneNumberId::text[], :name::text[]))';
  await execute(trx, `delete from message_states where ${which}`, values);
  return await execute(trx, `delete from message_statuses where ${which}`, values);
}

async function eraseMediaRows(trx: Transaction, messageIds: readonly string[]): Promise<number> {
  return await execute(
    trx,
    `with gone as (delete from media where message_id = any (:messageIds::bigint[]) returning message_id, waba_id, object_key)
     insert into erased_files (message_id, waba_id, object_key) select * from gone
     on conflict (message_id) do nothing`,
    { messageIds },
  );
}

async function giveUpUploads(trx: Transaction, wabaId: string, messageIds: readonly string[]): Promise<void> {
  await execute(
    trx,
    `update media_uploads u set state = 'deleted'
      where u.waba_id = :wabaId
        and u.id in (select unnest(media_ids) from outbound_messages where message_id = any (cast(:ids as bigint[])))
        and not exists (select from outbound_messages o
                         where o.media_ids @> array[u.id] and o.message_id <> all (cast(:ids as bigint[])))`,
    { wabaId, ids: messageIds },
  );
}

export async function rememberErased(
  trx: Transaction,
  named: readonly { phoneNumberId: string; name: string }[],
): Promise<void> {
  await execute(
    trx,
    `insert into erased_items (key)
     select distinct ${erasedKey('name')} from unnest(:ones::text[]) as n (name)
     on conflict do nothing`,
    { ones: named.map((one) => erasedName(one, one.name)) },
  );
}

/** Throws NotYetErased during an attempt. */
export async function eraseEventsAndPayments(
  trx: Transaction,
  wabaId: string,
  events: readonly ErasedEvent[],
): Promise<ErasureCounts> {
  if (events.length === 0) return {};
  const lanes = await queryColumn<string>(
    trx,
    'delete from payment_reports where event_uuid = any (:ids::uuid[]) returning lane',
    { ids: events.map(({ id }) => id) },
  );
  const ofEvents = await eraseEvents(trx, wabaId, events);
  const orderingKeys = await eraseOrderingKeys(trx, wabaId, lanes);
  return sumOf(ofEvents, { paymentReports: lanes.length, orderingKeys });
}

type StatusKey = { phoneNumberId: string; upstreamId: string; status: string; participant: string };

/** The messages among `whole` lose their whole state and are remembered as erased. */
export async function eraseStatusRows(
  trx: Transaction,
  statuses: readonly StatusKey[],
  whole: readonly StatusKey[],
): Promise<void> {
  await execute(
    trx,
    `delete from message_statuses where (phone_number_id, upstream_id, status, participant)
       in (select * from unnest(:phoneNumberId::text[], :upstreamId::text[], :status::text[], :participant::text[]))`,
    columnsOf(statuses, 'phoneNumberId', 'upstreamId', 'status', 'participant'),
  );
  await execute(
    trx,
    `delete from message_states where (phone_number_id, upstream_id) in (select * from unnest(:phoneNumberId::text[], :upstreamId::text[]))`,
    columnsOf(whole, 'phoneNumberId', 'upstreamId'),
  );
  await rememberErased(
    trx,
    whole.map(({ phoneNumberId, upstreamId }) => ({ phoneNumberId, name: upstreamId })),
  );
}

/** Reports whose event is still there go with it. Returns how many were erased. */
export async function erasePaymentReports(trx: Transaction, eventIds: readonly string[]): Promise<number> {
  return await execute(
    trx,
    `delete from payment_reports r where event_uuid = any (cast(:eventIds as uuid[]))
        and not exists (select from events e where e.id = r.event_uuid)`,
    { eventIds },
  );
}

/** The pace of sends to a customer. */
export async function erasePacing(trx: Transaction, wabaId: string, ids: readonly string[]): Promise<number> {
  return await execute(
    trx,
    `delete from send_pacing where recipient = any (cast(:ids as text[]))
        and phone_number_id in (select phone_number_id from phone_numbers where waba_id = :wabaId)`,
    { wabaId, ids },
  );
}

/** Their objects are gone: the URLs answer 410. */
export async function expireFiles(
  database: Database,
  files: readonly { id: string; key: string }[],
): Promise<void> {
  await execute(
    database,
    `with gone as (
       update media m set state = 'expired', object_key = null
         from unnest(cast(:ids as bigint[]), cast(:keys as text[])) as f (id, key)
        where m.message_id = f.id and m.state = 'stored'
       returning m.message_id, m.waba_id, f.key)
     insert into erased_files (message_id, waba_id, object_key) select * from gone`,
    { ids: files.map(({ id }) => id), keys: files.map(({ key }) => key) },
  );
}

/** Upstream says nothing of a message after so long. */
const REMEMBERED_DAYS = 400;

/** Returns how many of the oldest it deleted. */
export async function forgetOldErasedItems(database: Database, limit: number): Promise<number> {
  const which = `erased_at < now() - interval '${REMEMBERED_DAYS} days' order by erased_at`;
  return await deleteUpTo(database, limit, 'erased_items', which);
}
