import { eventsOfWaba, quietEvents } from '../../../engine/deliveries/erase-events.ts';
import { QUARANTINE_COUNTS } from '../../../engine/inbox/quarantine-counts.ts';
import { eraseDeliveriesOfWaba, ORDERING_KEYS } from '../../../engine/queue/erase-deliveries.ts';
import { findWaba } from '../../../features/accounts/accounts.ts';
import { MESSAGE_TEMPLATES } from '../../../features/accounts/templates.ts';
import { UPSTREAM_PROBLEMS } from '../../../features/accounts/upstream-problems.ts';
import { USAGE_COSTS } from '../../../features/accounts/usage-costs.ts';
import { CUSTOMER_TABLES } from '../../../features/customers/erase-customers.ts';
import { PHONE_ALIASES } from '../../../features/customers/phone-aliases.ts';
import { BROADCAST_RECIPIENTS, BROADCASTS } from '../../../features/messages/erase-broadcasts.ts';
import { eraseEventsAndPayments } from '../../../features/messages/erase-messages.ts';
import {
  eraseFilesOfWaba,
  eraseMessagesOfWaba,
  eraseUploads,
  filesOfWaba,
  MESSAGE_TABLES,
  stopMessagesOfWaba,
  uploadsOfWaba,
} from '../../../features/messages/erase-waba-messages.ts';
import { REPLAYS } from '../../../features/replays/replay-store.ts';
import { eraseWabaBodies, FIRST_BODY } from '../../../ingest/bodies/erase-bodies.ts';
import { HISTORY_PIECES } from '../../../ingest/fields/history.ts';
import { ERASED_REPEATS } from '../../../ingest/intake/erased-repeats.ts';
import { type ErasedTable, eraseRowsOfWaba, NotYetErased } from '../../../platform/erasing.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { query } from '../../../platform/postgres/sql.ts';
import { deleteTasks, listTasksOfWaba } from '../../../platform/temporal/workflow-tasks.ts';
import { ALERT_NOTICES } from '../../alerts/alert-notices.ts';
import { ALERT_TABLES } from '../../alerts/alerts.ts';
import { deleteEmptyWaba, removeWaba } from '../account-removal.ts';
import { auditStep, type ErasureStep, fileStep, rowStep, type StepContext } from '../erasure-step.ts';

const ROWS_PER_BATCH = 2_000;
const FILES_PER_BATCH = 200;
const EVENTS_PER_BATCH = 500;

/** As its removal does. */
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
const ENDING_BY_THEMSELVES = ['approveApiKey', 'erase%'];

/** Workflows that are at it find nothing more to do. */
const work: ErasureStep = {
  name: 'work',
  async prepare({ database, wabaId, cancelWorkflows }) {
    await stopMessagesOfWaba(database, wabaId);
    await cancelWorkflows(await listTasksOfWaba(database, wabaId, ENDING_BY_THEMSELVES, ROWS_PER_BATCH));
  },
  async erase(trx, { wabaId }) {
    const tasks = await listTasksOfWaba(trx, wabaId, ENDING_BY_THEMSELVES, ROWS_PER_BATCH);
    await deleteTasks(trx, tasks);
    return { after: tasks.length === 0 ? null : '' };
  },
};

const files = fileStep('files', {
  count: 'files',
  limit: FILES_PER_BATCH,
  find: filesOfWaba,
  erase: eraseFilesOfWaba,
});

const uploads = fileStep('uploaded files', {
  count: 'uploads',
  limit: FILES_PER_BATCH,
  find: uploadsOfWaba,
  erase: eraseUploads,
});

const events: ErasureStep = {
  name: 'events',
  prepare: async (context) => await quietEvents(context, await nextEvents(context.database, context)),
  async erase(trx, context) {
    const found = await nextEvents(trx, context);
    return {
      after: found.length === 0 ? null : '',
      counts: await eraseEventsAndPayments(trx, context.wabaId, found),
    };
  },
};

const nextEvents = (database: Database, { wabaId }: StepContext) =>
  eventsOfWaba(database, wabaId, EVENTS_PER_BATCH);

/** Deliveries that outlived their events. */
const deliveries: ErasureStep = {
  name: 'deliveries',
  async erase(trx, { wabaId }) {
    const counts = await eraseDeliveriesOfWaba(trx, wabaId, ROWS_PER_BATCH);
    return { after: counts.deliveries === 0 ? null : '', counts };
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
const messages = rowStep('messages', 'messages', (trx, wabaId) =>
  eraseMessagesOfWaba(trx, wabaId, ROWS_PER_BATCH),
);

const table = (erased: ErasedTable) =>
  rowStep(erased.table.replaceAll('_', ' '), erased.count, (trx, wabaId) =>
    eraseRowsOfWaba(trx, erased, wabaId, ROWS_PER_BATCH),
  );

/** As the removal of an empty one does. */
const waba: ErasureStep = {
  name: 'WABA',
  async erase(trx, { wabaId }) {
    const wasThere = await query(trx, 'select 1 from wabas where waba_id = :wabaId', { wabaId });
    const tasks = await listTasksOfWaba(trx, wabaId, ['erase%'], 1);
    if (tasks.length > 0) throw new NotYetErased('Requests for API keys are being ended.');
    if (wasThere.length > 0 && !(await deleteEmptyWaba(trx, wabaId)))
      throw new NotYetErased('Something of the WABA came in meanwhile.');
    return { after: null, counts: { wabas: wasThere.length } };
  },
};

export const WABA_STEPS: readonly ErasureStep[] = [
  ...[close, work, rawBodies, files, uploads],
  ...[table(MESSAGE_TABLES.orders), table(MESSAGE_TABLES.idempotencyKeys), table(MESSAGE_TABLES.sends)],
  ...[messages, events, deliveries],
  ...[table(MESSAGE_TABLES.statuses), table(MESSAGE_TABLES.states), table(MESSAGE_TABLES.paymentReports)],
  table(ORDERING_KEYS),
  ...[HISTORY_PIECES, ...CUSTOMER_TABLES].map(table),
  ...[table(MESSAGE_TABLES.catalogProducts), table(PHONE_ALIASES), table(MESSAGE_TABLES.pacing)],
  ...[
    REPLAYS,
    BROADCAST_RECIPIENTS,
    BROADCASTS,
    ALERT_NOTICES,
    ...ALERT_TABLES,
    UPSTREAM_PROBLEMS,
    MESSAGE_TEMPLATES,
    MESSAGE_TABLES.usageChanges,
    MESSAGE_TABLES.usageDays,
    USAGE_COSTS,
    QUARANTINE_COUNTS,
    ERASED_REPEATS,
  ].map(table),
  ...[waba, auditStep],
];
