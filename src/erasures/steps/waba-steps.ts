import { findWaba } from '../../accounts/accounts.ts';
import { eraseWabaBodies, FIRST_BODY } from '../../inbound/erase-bodies.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query } from '../../platform/postgres/sql.ts';
import { deleteEmptyWaba, removeWaba } from '../account-removal.ts';
import { type ErasureStep, NotYetErased, type StepContext } from '../erasure-step.ts';
import {
  auditStep,
  type ErasedEvent,
  eraseEvents,
  type FoundFile,
  quietEvents,
  rememberErased,
  removeFound,
} from './erase-rows.ts';

const ROWS_PER_BATCH = 2_000;
const FILES_PER_BATCH = 200;

/** Closes the WABA as its removal does: keys, endpoints with what waits for them, access token, numbers. */
const close: ErasureStep = {
  name: 'removal',
  async prepare({ database, wabaId, erasure }) {
    if ((await findWaba(database, wabaId)) === null) return;
    const actor = { name: erasure.requestedBy, requestId: null, ip: null };
    await removeWaba({ database, actor }, wabaId);
  },
  erase: async () => ({ after: null }),
};

/** Requests for keys are denied by the removal, and end by themselves. */
const ENDED_BY_US = `workflow_type <> 'approveApiKey' and workflow_type not like 'erase%'`;

/** Ends what workflows are doing for the WABA. Those that are at it find nothing more to do. */
const work: ErasureStep = {
  name: 'work',
  async prepare({ database, wabaId, cancelWorkflows }) {
    await execute(
      database,
      `update outbound_messages set state = 'failed', finished_at = now() where waba_id = ? and state = 'queued'`,
      [wabaId],
    );
    await execute(
      database,
      `update media set state = 'failed', error_code = 'media_erased', finished_at = now()
        where waba_id = ? and state = 'pending'`,
      [wabaId],
    );
    const sending = await query(
      database,
      `select 1 from outbound_messages where waba_id = ? and state = 'sending' and sending_until > clock_timestamp() limit 1`,
      [wabaId],
    );
    if (sending.length > 0) throw new NotYetErased('A message is being sent.');
    const tasks = await query<{ workflowId: string }>(
      database,
      `select workflow_id as "workflowId" from workflow_tasks
        where waba_id = ? and ${ENDED_BY_US} limit ${ROWS_PER_BATCH}`,
      [wabaId],
    );
    await cancelWorkflows(tasks.map(({ workflowId }) => workflowId));
  },
  async erase(trx, { wabaId }) {
    const tasks = await execute(
      trx,
      `delete from workflow_tasks where workflow_id = any (array(
         select workflow_id from workflow_tasks where waba_id = ? and ${ENDED_BY_US} limit ${ROWS_PER_BATCH}))`,
      [wabaId],
    );
    return { after: tasks === 0 ? null : '' };
  },
};

const files: ErasureStep = {
  name: 'files',
  removeFiles: async ({ database, objectStore, wabaId }) =>
    await removeFound(objectStore, await nextFiles(database, wabaId)),
  async erase(trx, _context, _after, removed) {
    await execute(
      trx,
      `with gone as (delete from media where message_id = any (?::bigint[]) returning message_id, object_key)
       insert into erased_files (message_id, object_key) select * from gone
       on conflict (message_id) do update set waba_id = null`,
      [removed],
    );
    return { after: removed.length === 0 ? null : '', counts: { files: removed.length } };
  },
};

const uploads: ErasureStep = {
  name: 'uploaded files',
  removeFiles: async ({ database, objectStore, wabaId }) =>
    await removeFound(objectStore, await nextUploads(database, wabaId)),
  async erase(trx, _context, _after, removed) {
    const gone = await execute(trx, 'delete from media_uploads where id = any (?::uuid[])', [removed]);
    return { after: removed.length === 0 ? null : '', counts: { uploads: gone } };
  },
};

async function nextFiles(database: Database, wabaId: string): Promise<FoundFile[]> {
  return await query<FoundFile>(
    database,
    `select message_id as id, object_key as key from media where waba_id = ? order by message_id limit ${FILES_PER_BATCH}`,
    [wabaId],
  );
}

async function nextUploads(database: Database, wabaId: string): Promise<FoundFile[]> {
  return await query<FoundFile>(
    database,
    `select id, object_key as key from media_uploads where waba_id = ? order by id limit ${FILES_PER_BATCH}`,
    [wabaId],
  );
}

const events: ErasureStep = {
  name: 'events',
  prepare: async (context) => await quietEvents(context, await nextEvents(context.database, context)),
  async erase(trx, context) {
    const found = await nextEvents(trx, context);
    return { after: found.length === 0 ? null : '', counts: await eraseEvents(trx, context.wabaId, found) };
  },
};

async function nextEvents(database: Database, { wabaId }: StepContext): Promise<ErasedEvent[]> {
  return await query<ErasedEvent>(
    database,
    'select day, id from events where waba_id = ? order by id limit 500',
    [wabaId],
  );
}

/** Deliveries that outlived their events. */
const deliveries: ErasureStep = {
  name: 'deliveries',
  async erase(trx, { wabaId }) {
    const rows = await query<{ id: string }>(
      trx,
      `select id from deliveries where waba_id = ? limit ${ROWS_PER_BATCH}`,
      [wabaId],
    );
    const ids = rows.map(({ id }) => id);
    const attempts = await execute(trx, 'delete from attempts where delivery_id = any (?::uuid[])', [ids]);
    await execute(trx, 'delete from deliveries where waba_id = ? and id = any (?::uuid[])', [wabaId, ids]);
    return { after: ids.length === 0 ? null : '', counts: { deliveries: ids.length, attempts } };
  },
};

const rawBodies: ErasureStep = {
  name: 'raw bodies',
  async erase(trx, { wabaId }, after) {
    const place = after === null ? FIRST_BODY : JSON.parse(after);
    const { next, deleted } = await eraseWabaBodies(trx, wabaId, place);
    return { after: next === null ? null : JSON.stringify(next), counts: { rawBodiesDeleted: deleted } };
  },
};

/** Messages are remembered, should the tenant add the WABA again within the days in which upstream repeats. */
const messages: ErasureStep = {
  name: 'messages',
  async erase(trx, { wabaId }) {
    const gone = await query<{ phoneNumberId: string; name: string | null }>(
      trx,
      `delete from messages where id = any (array(
         select m.id from conversations c cross join lateral (
           select id from messages x where x.conversation_id = c.id limit ${ROWS_PER_BATCH}) as m
          where c.waba_id = ? limit ${ROWS_PER_BATCH}))
       returning phone_number_id as "phoneNumberId", coalesce(upstream_id, superseded_upstream_id) as name`,
      [wabaId],
    );
    await rememberErased(
      trx,
      gone.flatMap(({ phoneNumberId, name }) => (name === null ? [] : [{ phoneNumberId, name }])),
    );
    return { after: gone.length === 0 ? null : '', counts: { messages: gone.length } };
  },
};

/** A table, the name under which its rows are counted, and which of them are the WABA's. */
type Table = { table: string; count: string; key: string; where?: string; numbers?: boolean };

/** What goes batch by batch. Each names its primary key, by which a batch is deleted. */
const table = ({ table: name, count, key, where = 'true', numbers = false }: Table): ErasureStep => ({
  name: name.replaceAll('_', ' '),
  async erase(trx: Transaction, { wabaId }) {
    const own = numbers
      ? 'phone_number_id in (select phone_number_id from phone_numbers where waba_id = ?)'
      : 'waba_id = ?';
    const gone = await execute(
      trx,
      `delete from ${name} where (${key}) in (select ${key} from ${name} where ${own} and ${where} limit ${ROWS_PER_BATCH})`,
      [wabaId],
    );
    return { after: gone === 0 ? null : '', counts: { [count]: gone } };
  },
});

const ofNumbers = { numbers: true };

/** The WABA itself, with its numbers and keys, as the removal of an empty one deletes it. */
const waba: ErasureStep = {
  name: 'WABA',
  async erase(trx, { wabaId }) {
    const wasThere = await query(trx, 'select 1 from wabas where waba_id = ?', [wabaId]);
    const tasks = await query(
      trx,
      `select 1 from workflow_tasks where waba_id = ? and workflow_type not like 'erase%'`,
      [wabaId],
    );
    if (tasks.length > 0) throw new NotYetErased('Requests for API keys are being ended.');
    if (wasThere.length > 0 && !(await deleteEmptyWaba(trx, wabaId)))
      throw new NotYetErased('Something of the WABA came in meanwhile.');
    return { after: null, counts: { wabas: wasThere.length } };
  },
};

/** How a WABA is erased. */
export const WABA_STEPS: readonly ErasureStep[] = [
  ...[close, work, rawBodies, files, uploads],
  table({ table: 'orders', count: 'orders', key: 'id' }),
  table({ table: 'idempotency_keys', count: 'idempotencyKeys', key: 'waba_id, operation, key' }),
  table({ table: 'outbound_messages', count: 'sends', key: 'message_id' }),
  ...[messages, events, deliveries],
  table({
    ...{ table: 'message_statuses', count: 'statuses', ...ofNumbers },
    key: 'phone_number_id, upstream_id, status, participant',
  }),
  table({ table: 'message_states', count: 'states', key: 'phone_number_id, upstream_id', ...ofNumbers }),
  table({ table: 'payment_reports', count: 'paymentReports', key: 'event_uuid' }),
  table({ table: 'ordering_keys', count: 'orderingKeys', key: 'waba_id, key' }),
  table({ table: 'conversations', count: 'conversations', key: 'id', where: 'merged_into <> id' }),
  table({ table: 'conversations', count: 'conversations', key: 'id' }),
  table({ table: 'contacts', count: 'contacts', key: 'id' }),
  table({ table: 'catalog_products', count: 'catalogProducts', key: 'waba_id, catalog_id, retailer_id' }),
  table({ table: 'phone_aliases', count: 'aliases', key: 'waba_id, phone' }),
  table({ table: 'send_pacing', count: 'pacing', key: 'phone_number_id, recipient', ...ofNumbers }),
  table({ table: 'replays', count: 'replays', key: 'id' }),
  table({ table: 'alert_notices', count: 'alertNotices', key: 'id' }),
  table({ table: 'alerts', count: 'alerts', key: 'id' }),
  table({ table: 'upstream_troubles', count: 'upstreamTroubles', key: 'waba_id, kind, subject' }),
  table({ table: 'waba_hours', count: 'activityHours', key: 'waba_id, hour' }),
  table({ table: 'quarantine_counts', count: 'quarantineCounts', key: 'day, reason, field, waba_id' }),
  table({ table: 'erased_repeats', count: 'repeats', key: 'waba_id' }),
  ...[waba, auditStep],
];
