import type { Database, Transaction } from '../../platform/postgres/database.ts';
import { execute, query, queryColumn } from '../../platform/postgres/sql.ts';
import { dayOfUuidV7 } from '../../platform/public-ids.ts';
import { wakeDispatcher } from './enqueue.ts';
import { rowIs } from './states.ts';

/** The statuses with which a server says that it could not serve, whatever the event was. */
export const TROUBLE_STATUS = { least: 500, others: [408, 429] } as const;

/** Makes a delivery due whose retry is still to come. False: it waits for no retry any more. Test events never do. */
export async function retryOne(trx: Transaction, deliveryId: string): Promise<boolean> {
  return (await makeDue(trx, 'delivery_id = cast(:deliveryId as uuid)', { deliveryId })) === 1;
}

/** SQL that a row of an endpoint is retried, for which only the index serves that begins with the endpoint. */
const RETRYING_AT_ENDPOINT = `state in ('claimed', 'retrying') and ${rowIs('retrying')}`;

/** More than this are left for another request: each must end within its time. */
const MAX_RETRIES = 50_000;
const RETRIES_AT_ONCE = 1_000;

/**
 * Makes the heads of an endpoint due whose retries are still to come, in short transactions, each head once. `more`:
 * there were more than one request goes through.
 */
export async function retryWaiting(
  database: Database,
  endpointId: string,
): Promise<{ retried: number; more: boolean }> {
  const rows = await query<{ position: string }>(
    database,
    `select position from delivery_queue
      where endpoint_id = :endpointId and ${RETRYING_AT_ENDPOINT} and attempts > 0 limit ${MAX_RETRIES + 1}`,
    { endpointId },
  );
  const { retried } = await inShortTransactions(database, rows.slice(0, MAX_RETRIES), (trx, batch) =>
    makeDue(trx, AT_POSITIONS, { batch: batch.map(({ position }) => position) }),
  );
  return { retried, more: rows.length > MAX_RETRIES };
}

/** Moves waiting retries in short transactions, until one says by null that it must not go on. */
async function inShortTransactions<Row>(
  database: Database,
  rows: readonly Row[],
  move: (trx: Transaction, batch: readonly Row[]) => Promise<number | null>,
): Promise<{ retried: number; isToTheEnd: boolean }> {
  let retried = 0;
  for (let from = 0; from < rows.length; from += RETRIES_AT_ONCE) {
    const moved = await database.transaction((trx) => move(trx, rows.slice(from, from + RETRIES_AT_ONCE)));
    if (moved === null) return { retried, isToTheEnd: false };
    retried += moved;
  }
  return { retried, isToTheEnd: true };
}

const AT_POSITIONS = `ctid = any (array(select ctid from delivery_queue
  where position = any (cast(:batch as bigint[])) and ${rowIs('retrying')} for update skip locked))`;

/**
 * Brings the retries forward that wait because their endpoint was in trouble; what it refused for itself keeps its time.
 * One that fails again waits for its former time and has used up no retry. Ends early when `mayGoOn` says so, which it
 * asks before each short transaction. A retry that comes within `soonSeconds` comes by itself. `isDone`: nothing is left.
 */
export async function bringForward(
  database: Database,
  endpointId: string,
  { soonSeconds, mayGoOn }: { soonSeconds: number; mayGoOn: (trx: Transaction) => Promise<boolean> },
): Promise<{ retried: number; isDone: boolean }> {
  const rows = await query<WaitingRetry>(
    database,
    `select position, delivery_id as id, delivery_day as day from delivery_queue
      where endpoint_id = :endpointId and ${RETRYING_AT_ENDPOINT} and attempts > 0
        and next_attempt_at > now() + cast(:soonSeconds as float8) * interval '1 second' limit ${MAX_RETRIES}`,
    { endpointId, soonSeconds },
  );
  const { retried, isToTheEnd } = await inShortTransactions(database, rows, async (trx, waiting) => {
    if (!(await mayGoOn(trx))) return null;
    const batch = await findTroubled(trx, waiting);
    const due = await makeDue(trx, AT_POSITIONS, { batch }, 'next_attempt_at');
    if (due > 0) {
      wakeDispatcher(trx);
      trx.notify('heliograph_endpoints', endpointId);
    }
    return due;
  });
  return { retried, isDone: isToTheEnd && (rows.length < MAX_RETRIES || retried === 0) };
}

type WaitingRetry = { position: string; id: string; day: string };

/** The positions of those whose last attempt says that the server was in trouble. */
async function findTroubled(trx: Transaction, waiting: readonly WaitingRetry[]): Promise<string[]> {
  const ids = await queryColumn<string>(
    trx,
    `select id from deliveries
      where day = any (cast(:days as date[])) and id = any (cast(:ids as uuid[]))
        and (last_status_code is null or last_status_code >= ${TROUBLE_STATUS.least}
             or last_status_code in (${TROUBLE_STATUS.others.join(', ')}))`,
    { days: [...new Set(waiting.map(({ day }) => day))], ids: waiting.map(({ id }) => id) },
  );
  const troubled = new Set(ids);
  return waiting.filter(({ id }) => troubled.has(id)).map(({ position }) => position);
}

/**
 * `scheduledAt`: when it is due after an attempt that fails and uses up no retry; null: it is the next of the schedule.
 * The log says since when an attempt is due. A row of the log that another transaction has locked keeps the time that it had,
 * until the attempt is recorded: waiting for it could deadlock.
 */
async function makeDue(
  trx: Transaction,
  condition: string,
  bindings: Record<string, string | readonly string[]>,
  scheduledAt: 'null' | 'next_attempt_at' = 'null',
): Promise<number> {
  const due = await query<{ id: string; day: string; batch: string[] | null }>(
    trx,
    `update delivery_queue set state = 'due', next_attempt_at = null, scheduled_at = ${scheduledAt}
      where ${condition} and ${rowIs('retrying')} and attempts > 0
     returning delivery_id as id, delivery_day as day, batch`,
    bindings,
  );
  if (due.length === 0) return 0;
  const others = due.flatMap(({ batch }) => batch?.slice(1) ?? []);
  await execute(
    trx,
    `update deliveries set next_attempt_at = clock_timestamp()
      where day = any (cast(:days as date[])) and id = any (array(
        select id from deliveries
         where day = any (cast(:days as date[])) and id = any (cast(:ids as uuid[])) and state = 'pending'
           for no key update skip locked))`,
    {
      days: [...new Set([...due.map(({ day }) => day), ...others.map(dayOfUuidV7)])],
      ids: [...due.map(({ id }) => id), ...others],
    },
  );
  return due.length;
}
