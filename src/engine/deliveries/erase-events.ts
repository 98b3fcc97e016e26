import { type ErasureCounts, NotYetErased } from '../../platform/erasing.ts';
import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { query, queryColumn } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7 } from '../../platform/public-ids.ts';
import { RUN_PREFIX } from '../queue/claim.ts';
import { deleteDeliveriesOf, ERASED_REASON, eraseDeliveriesOf } from '../queue/erase-deliveries.ts';
import { eraseOrderingKeys } from '../queue/ordering-keys.ts';
import { removeDeliveries } from '../queue/remove.ts';
import { findOpenDeliveries } from '../queue/sweep.ts';

export type ErasedEvent = { day: string; id: string };

type EventTools = { database: Database; cancelWorkflows: (workflowIds: readonly string[]) => Promise<void> };

/** Also those of the batches in which some of them went out: they have their bytes. */
async function withBatches(
  database: Database,
  events: readonly ErasedEvent[],
): Promise<readonly ErasedEvent[]> {
  const ids = await queryColumn<string>(
    database,
    'select distinct batch_id from deliveries where event_uuid = any (cast(:ids as uuid[])) and batch_id is not null',
    { ids: events.map(({ id }) => id) },
  );
  const known = new Set(events.map(({ id }) => id));
  const batches = ids.filter((id) => !known.has(id)).map((id) => ({ day: dayOfUuidV7(id), id }));
  return [...events, ...batches];
}

/** Takes the deliveries of events out of the queue and ends their workflows. Throws NotYetErased during attempts. */
export async function quietEvents(
  { database, cancelWorkflows }: EventTools,
  given: readonly ErasedEvent[],
): Promise<void> {
  const events = await withBatches(database, given);
  const open = await query<{ id: string; workflowId: string | null }>(
    database,
    `select coalesce(batch_id, id) as id, workflow_id as "workflowId" from deliveries
      where event_uuid = any (:ids::uuid[]) and (state = 'pending' or last_error = '${ERASED_REASON}')`,
    { ids: events.map(({ id }) => id) },
  );
  const ids = open.map(({ id }) => id);
  await removeDeliveries(database, ids, { reason: ERASED_REASON });
  const left = await findOpenDeliveries(database, ids);
  const ended = open.filter(({ id, workflowId }) => !left.has(id) && workflowId?.startsWith(RUN_PREFIX));
  await cancelWorkflows(ended.flatMap(({ workflowId }) => workflowId ?? []));
  if (left.size > 0) throw new NotYetErased(`${left.size} deliveries are being attempted.`);
}

export async function eventsOfWaba(
  database: Database,
  wabaId: string,
  limit: number,
): Promise<ErasedEvent[]> {
  const text = 'select day, id from events where waba_id = :wabaId order by id limit :limit';
  return await query<ErasedEvent>(database, text, { wabaId, limit });
}

/** Erases events with their deliveries and attempts. Throws NotYetErased during an attempt. */
export async function eraseEvents(
  trx: Transaction,
  wabaId: string,
  given: readonly ErasedEvent[],
): Promise<ErasureCounts> {
  if (given.length === 0) return {};
  const events = await withBatches(trx, given);
  const gone = await eraseDeliveriesOf(
    trx,
    events.map(({ id }) => id),
  );
  const erased = await deleteEvents(trx, events);
  // A catalog belongs to no customer.
  const lanes = erased.filter(({ type }) => type !== 'order').map(({ lane }) => lane);
  return { ...gone, events: erased.length, orderingKeys: await eraseOrderingKeys(trx, wabaId, lanes) };
}

async function deleteEvents(
  trx: Transaction,
  events: readonly ErasedEvent[],
): Promise<{ type: string; lane: string }[]> {
  return await query(
    trx,
    `delete from events where (day, id) in (select * from unnest(:daies::date[], :ids::uuid[]))
     returning event_type as type, lane`,
    { daies: events.map(({ day }) => day), ids: events.map(({ id }) => id) },
  );
}

/** Looked at by one statement, and deleted by one transaction. */
const ROWS_PER_BATCH = 200;
const DAY_MS = 86_400_000;

const FIRST_UUID = '00000000-0000-0000-0000-000000000000';

/**
 * Deletes a page of a WABA's events of more than so many days ago, with their deliveries and attempts, unless one of their
 * deliveries is open. Returns where the next page begins; null: there is none.
 */
export async function expireEventsOf(
  database: Database,
  { wabaId, days }: { wabaId: string; days: number },
  after: string | null,
): Promise<string | null> {
  return await database.transaction(async (trx) => {
    const walked = await query<{ day: string; id: string; isOver: boolean }>(
      trx,
      `select day, id, body is not null and not exists (
                select from deliveries d join delivery_queue q on q.delivery_id = coalesce(d.batch_id, d.id)
                 where d.event_uuid = e.id)
              and not exists (select from delivery_queue q where q.delivery_id = e.id) as "isOver"
         from (select day, id, body from events
                where waba_id = :wabaId and id < cast(:before as uuid) and id > cast(:after as uuid)
                order by id limit ${ROWS_PER_BATCH}) as e`,
      { wabaId, before: firstUuidOf(days), after: after ?? FIRST_UUID },
    );
    const events = walked.filter(({ isOver }) => isOver);
    await deleteDeliveriesOf(
      trx,
      events.map(({ id }) => id),
    );
    await deleteEvents(trx, events);
    return walked.length === ROWS_PER_BATCH ? (walked.at(-1)?.id ?? null) : null;
  });
}

/** Before every version 7 UUID from the UTC day on that began `days` days before today's. */
function firstUuidOf(days: number): string {
  const ms = (Math.floor(Date.now() / DAY_MS) - days) * DAY_MS;
  const hex = ms.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
