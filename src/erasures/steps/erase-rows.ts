import { mediaReadyEventId } from '../../deliveries/envelope.ts';
import { laneOf } from '../../deliveries/publish.ts';
import { erasedName, localMessageId, sendMarker } from '../../messages/messages.ts';
import { redactAudit } from '../../platform/audit/audit.ts';
import type { ObjectStore } from '../../platform/object-store/object-store.ts';
import { ObjectStoreUnavailable } from '../../platform/object-store/object-store.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { removeDeliveries } from '../../queue/remove.ts';
import { findOpenDeliveries } from '../../queue/sweep.ts';
import type { ErasureCounts } from '../erasure-report.ts';
import { type ErasureStep, NotYetErased, type StepTools } from '../erasure-step.ts';

const REASON = 'dropped: erased';
const REMOVALS_AT_ONCE = 8;
const STORE_AWAY_WAIT_MS = 10_000;

/** An event to be erased. */
export type ErasedEvent = { day: string; id: string };

/** A message to be erased. */
export type ErasedMessage = {
  id: string;
  phoneNumberId: string;
  upstreamId: string | null;
  supersededId: string | null;
};

/** The columns of ErasedMessage, of `messages m`. */
export const ERASED_MESSAGE = `m.id, m.phone_number_id as "phoneNumberId", m.upstream_id as "upstreamId",
  m.superseded_upstream_id as "supersededId"`;

/** Adds counts up. */
export function sumOf(...all: readonly (ErasureCounts | undefined)[]): ErasureCounts {
  const sum: Record<string, number> = {};
  for (const counts of all) {
    for (const [name, count] of Object.entries(counts ?? {}))
      if (count > 0) sum[name] = (sum[name] ?? 0) + count;
  }
  return sum;
}

/** Removes objects from the store. Throws NotYetErased while the store is away. */
export async function removeObjects(
  objectStore: Pick<ObjectStore, 'remove'>,
  keys: readonly string[],
): Promise<void> {
  try {
    for (let at = 0; at < keys.length; at += REMOVALS_AT_ONCE)
      await Promise.all(keys.slice(at, at + REMOVALS_AT_ONCE).map((key) => objectStore.remove(key)));
  } catch (error) {
    if (!(error instanceof ObjectStoreUnavailable)) throw error;
    throw new NotYetErased('The object store is away.', STORE_AWAY_WAIT_MS);
  }
}

/** A file, with the id of its row. */
export type FoundFile = { id: string; key: string | null };

/** Removes the objects of files; returns the ids of their rows. Throws NotYetErased while the store is away. */
export async function removeFound(
  objectStore: Pick<ObjectStore, 'remove'>,
  files: readonly FoundFile[],
): Promise<string[]> {
  await removeObjects(
    objectStore,
    files.flatMap(({ key }) => key ?? []),
  );
  return files.map(({ id }) => id);
}

/** Takes the deliveries of events out of the queue and ends their workflows. Throws NotYetErased during attempts. */
export async function quietEvents(
  { database, cancelWorkflows }: Pick<StepTools, 'database' | 'cancelWorkflows'>,
  events: readonly ErasedEvent[],
): Promise<void> {
  const open = await query<{ id: string; workflowId: string | null }>(
    database,
    `select id, workflow_id as "workflowId" from deliveries
      where event_uuid = any (?::uuid[]) and (state = 'pending' or last_error = '${REASON}')`,
    [events.map(({ id }) => id)],
  );
  const ids = open.map(({ id }) => id);
  await removeDeliveries(database, ids, { reason: REASON });
  const left = await findOpenDeliveries(database, ids);
  const ended = open.filter(({ id, workflowId }) => !left.has(id) && workflowId?.startsWith('delivery/'));
  await cancelWorkflows(ended.flatMap(({ workflowId }) => workflowId ?? []));
  if (left.size > 0) throw new NotYetErased(`${left.size} deliveries are being attempted.`);
}

/** Entries of the audit log in which an early version named events, whose ids hold numbers. */
export const auditStep: ErasureStep = {
  name: 'audit log',
  async erase(trx, { wabaId }) {
    const auditEntries = await redactAudit(trx, wabaId);
    return { after: auditEntries === 0 ? null : '', counts: { auditEntries } };
  },
};

/** Erases events with their deliveries, attempts and reports of payments. */
export async function eraseEvents(
  trx: Transaction,
  wabaId: string,
  events: readonly ErasedEvent[],
): Promise<ErasureCounts> {
  if (events.length === 0) return {};
  const ids = events.map(({ id }) => id);
  const deliveries = await query<{ id: string }>(
    trx,
    'select id from deliveries where event_uuid = any (?::uuid[])',
    [ids],
  );
  const deliveryIds = deliveries.map(({ id }) => id);
  // A replay may have queued some since `quietEvents`.
  await removeDeliveries(trx, deliveryIds, { reason: REASON });
  if ((await findOpenDeliveries(trx, deliveryIds)).size > 0)
    throw new NotYetErased('A delivery is being attempted.');
  const attempts = await deleteWhere(trx, 'attempts', 'delivery_id = any (cast(:ids as uuid[]))', {
    ids: deliveryIds,
  });
  const gone = await deleteWhere(trx, 'deliveries', 'event_uuid = any (cast(:ids as uuid[]))', { ids });
  const payments = await query<{ lane: string }>(
    trx,
    `delete from payment_reports where event_uuid = any (?::uuid[]) returning lane`,
    [ids],
  );
  const erased = await query<{ type: string; lane: string }>(
    trx,
    `delete from events where (day, id) in (select * from unnest(?::date[], ?::uuid[]))
     returning event_type as type, lane`,
    [events.map(({ day }) => day), ids],
  );
  // A catalog is nobody's.
  const lanes = [...payments, ...erased.filter(({ type }) => type !== 'order')].map(({ lane }) => lane);
  const keys = await eraseOrderingKeys(trx, wabaId, lanes);
  return {
    ...{ attempts, deliveries: gone, events: erased.length, paymentReports: payments.length },
    ...{ orderingKeys: keys },
  };
}

async function eraseOrderingKeys(
  trx: Transaction,
  wabaId: string,
  lanes: readonly string[],
): Promise<number> {
  const keys = [...new Set(lanes)];
  return await deleteWhere(trx, 'ordering_keys', 'waba_id = :wabaId and key = any (cast(:keys as text[]))', {
    wabaId,
    keys,
  });
}

/** Deletes the rows of a table that a condition names; returns how many. */
export async function deleteWhere(
  trx: Transaction,
  table: string,
  condition: string,
  bindings: Readonly<Record<string, string | readonly string[]>>,
): Promise<number> {
  return await execute(trx, `delete from ${table} where ${condition}`, bindings);
}

/** Every name under which upstream, or we, know of messages. */
function namesOf({ id, upstreamId, supersededId }: ErasedMessage): string[] {
  const upstream = [upstreamId, supersededId].filter((name) => name !== null);
  return [...new Set([...upstream, localMessageId(id)])];
}

function namedBy(messages: readonly ErasedMessage[]): (ErasedMessage & { name: string })[] {
  return messages.flatMap((message) => namesOf(message).map((name) => ({ ...message, name })));
}

/** The events of messages, as far as they are known by ids. */
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
      ...{ wabaId, names, ids: messages.map(({ id }) => id) },
      numbers: [...new Set(messages.map(({ phoneNumberId }) => phoneNumberId))],
    },
  );
}

/** Ends sends that have not begun. Throws NotYetErased while a message is being sent. */
export async function stopSends(database: Database, messages: readonly ErasedMessage[]): Promise<void> {
  const ids = messages.map(({ id }) => id);
  await execute(
    database,
    `update outbound_messages set state = 'failed', finished_at = now()
      where message_id = any (?::bigint[]) and state = 'queued'`,
    [ids],
  );
  const sending = await query(
    database,
    `select 1 from outbound_messages
      where message_id = any (?::bigint[]) and state = 'sending' and sending_until > clock_timestamp()`,
    [ids],
  );
  if (sending.length > 0) throw new NotYetErased('A message is being sent.');
}

/**
 * Stops what is under way for messages: sends, downloads, deliveries; removes their files. Throws NotYetErased while a
 * message is being sent or an event attempted.
 */
export async function quietMessages(
  tools: StepTools,
  wabaId: string,
  messages: readonly ErasedMessage[],
): Promise<void> {
  if (messages.length === 0) return;
  const { database, objectStore, cancelWorkflows } = tools;
  const ids = messages.map(({ id }) => id);
  await stopSends(database, messages);
  await execute(
    database,
    `update media set state = 'failed', error_code = 'media_erased', finished_at = now()
      where message_id = any (?::bigint[]) and state = 'pending'`,
    [ids],
  );
  const tasks = await query<{ workflowId: string }>(
    database,
    'select workflow_id as "workflowId" from workflow_tasks where workflow_id = any (?::text[])',
    [tasksOf(ids)],
  );
  await cancelWorkflows(tasks.map(({ workflowId }) => workflowId));
  const files = await query<{ key: string }>(
    database,
    'select object_key as key from media where message_id = any (?::bigint[]) and object_key is not null',
    [ids],
  );
  await removeObjects(
    objectStore,
    files.map(({ key }) => key),
  );
  await quietEvents(tools, await eventsOf(database, wabaId, messages));
}

function tasksOf(messageIds: readonly string[]): string[] {
  return messageIds.flatMap((id) => [`media/${id}`, `send/${id}`]);
}

/** Erases messages with all that hangs on them, once `quietMessages` has passed. */
export async function eraseMessages(
  trx: Transaction,
  wabaId: string,
  messages: readonly ErasedMessage[],
  { uploads = 'go' }: { uploads?: 'go' | 'stay' } = {},
): Promise<ErasureCounts> {
  if (messages.length === 0) return {};
  const ids = messages.map(({ id }) => id);
  const ofEvents = await eraseEvents(trx, wabaId, await eventsOf(trx, wabaId, messages));
  const named = namedBy(messages);
  const orderingKeys = await eraseOrderingKeys(
    trx,
    wabaId,
    named.map(({ name }) => laneOf(name)),
  );
  const statuses = await eraseStatuses(trx, named);
  const orders = await query<{ id: string }>(
    trx,
    'delete from orders where message_id = any (?::bigint[]) returning id',
    [ids],
  );
  const files = await eraseMediaRows(trx, ids);
  if (uploads === 'go') await giveUpUploads(trx, wabaId, ids);
  const byMessage = 'message_id = any (cast(:ids as bigint[]))';
  const idempotencyKeys = await deleteWhere(trx, 'idempotency_keys', `waba_id = :wabaId and ${byMessage}`, {
    wabaId,
    ids,
  });
  const workflowIds = [...tasksOf(ids), ...orders.map(({ id }) => `order/${id}`)];
  await deleteWhere(trx, 'workflow_tasks', 'workflow_id = any (cast(:workflowIds as text[]))', {
    workflowIds,
  });
  await rememberMessages(trx, messages);
  const gone = await deleteWhere(trx, 'messages', 'id = any (cast(:ids as bigint[]))', { ids });
  return sumOf(ofEvents, {
    ...{ orderingKeys, statuses, orders: orders.length, files, idempotencyKeys, messages: gone },
  });
}

/** Remembers messages as erased: intake drops what upstream says of them from then on. */
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
  const values = [named.map(({ phoneNumberId }) => phoneNumberId), named.map(({ name }) => name)];
  const which = '(phone_number_id, upstream_id) in (select * from unnest(?::text[], ?::text[]))';
  await execute(trx, `delete from message_states where ${which}`, values);
  return await execute(trx, `delete from message_statuses where ${which}`, values);
}

/** Erases the rows of files, whose URLs say from now on that they are gone. */
async function eraseMediaRows(trx: Transaction, messageIds: readonly string[]): Promise<number> {
  return await execute(
    trx,
    `with gone as (delete from media where message_id = any (?::bigint[]) returning message_id, waba_id, object_key)
     insert into erased_files (message_id, waba_id, object_key) select * from gone
     on conflict (message_id) do nothing`,
    [messageIds],
  );
}

/** Gives up the files of a tenant's that were sent with these messages and with no others. */
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

/** Remembers messages by a salted hash, so that intake drops what upstream says of them again. */
export async function rememberErased(
  trx: Transaction,
  named: readonly { phoneNumberId: string; name: string }[],
): Promise<void> {
  await execute(
    trx,
    `insert into erased_items (key)
     select distinct sha256((select salt from erasure_salt) || convert_to(name, 'UTF8')) from unnest(?::text[]) as n (name)
     on conflict do nothing`,
    [named.map((one) => erasedName(one, one.name))],
  );
}
