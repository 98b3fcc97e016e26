import type { Database } from '../../src/platform/postgres/database.ts';
import { execute } from '../../src/platform/postgres/sql.ts';

/** What waits in the queue. */
export type QueueShape = {
  name: string;
  rows: number;
  /** `blocked heads`: half is due, half waits behind heads that retry. `one paused`: nearly all at one paused endpoint. */
  kind: 'blocked heads' | 'one paused endpoint';
};

const ENDPOINTS = 200;
const OPEN_BESIDE_PAUSED = 10;
const DUE_AT_EACH_OPEN = 100;
const EVENTS = 10_000;
const BODY_BYTES = 700;

/** Rows per statement: a statement may take 30 seconds. */
const STEP = 100_000;

/** Empties the queue and fills it anew; every delivery carries one of 10,000 stored events. */
export async function fillQueue(database: Database, shape: QueueShape): Promise<void> {
  await database.raw('truncate delivery_queue, deliveries, attempts, events; delete from webhook_endpoints');
  await execute(
    database,
    `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, body, occurred_at)
     select current_date, md5('event ' || n)::uuid, '1', 1, '1', 'message', 'wamid.' || n, 'message wamid.' || n, 1,
            convert_to(repeat('x', cast(:bytes as integer)), 'UTF8'), now()
       from generate_series(1, cast(:events as integer)) as n`,
    { bytes: BODY_BYTES, events: EVENTS },
  );
  const endpoints = shape.kind === 'blocked heads' ? ENDPOINTS : OPEN_BESIDE_PAUSED + 1;
  await execute(
    database,
    `insert into webhook_endpoints (id, waba_id, url, secret_sealed) overriding system value
     select n, '1', 'https://bench.example', '' from generate_series(1, cast(:endpoints as integer)) as n`,
    { endpoints },
  );
  if (shape.kind === 'one paused endpoint')
    await database.raw(`update endpoint_health set mode = 'paused' where endpoint_id = 1`);
  for (let from = 0; from < shape.rows; from += STEP) {
    const to = Math.min(from + STEP, shape.rows) - 1;
    if (shape.kind === 'blocked heads') await fillBlocked(database, from, to);
    else await fillPaused(database, from, to);
  }
  await database.raw('vacuum analyze delivery_queue');
  await database.raw('analyze events; analyze webhook_endpoints; analyze endpoint_health; checkpoint');
}

const COLUMNS = `endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid, attempts,
                 next_attempt_at, first_failed_at, run`;
const EVENT = `current_date, md5('event ' || 1 + n % ${EVENTS})::uuid`;

/** Even rows are due heads of lanes of their own; odd rows wait behind ten heads per endpoint that retry in an hour. */
async function fillBlocked(database: Database, from: number, to: number): Promise<void> {
  await execute(
    database,
    `insert into delivery_queue (${COLUMNS})
     select 1 + (n / 2) % :endpoints,
            case when n % 2 = 0 then 'own ' || n else 'blocked ' || (n / 2 / :endpoints) % 10 end,
            case when n % 2 = 0 then 'due' when n / 2 < 10 * :endpoints then 'retrying' else 'queued' end,
            true, current_date, gen_random_uuid(), ${EVENT}, case when n % 2 = 0 then 0 else 1 end,
            case when n % 2 = 1 then now() + interval '1 hour' end, case when n % 2 = 1 then now() end,
            case when n % 2 = 1 and n / 2 < 10 * :endpoints and n / 2 / :endpoints <= 5 then 'room' end
       from generate_series(cast(:from as integer), cast(:to as integer)) as n`,
    { endpoints: ENDPOINTS, from, to },
  );
}

/** All at endpoint 1, which is paused, but for a few at each of the others. */
async function fillPaused(database: Database, from: number, to: number): Promise<void> {
  await execute(
    database,
    `insert into delivery_queue (${COLUMNS})
     select case when n < :few then 2 + n % ${OPEN_BESIDE_PAUSED} else 1 end, 'own ' || n, 'due', true, current_date,
            gen_random_uuid(), ${EVENT}, 0, null, null, null
       from generate_series(cast(:from as integer), cast(:to as integer)) as n`,
    { few: OPEN_BESIDE_PAUSED * DUE_AT_EACH_OPEN, from, to },
  );
}
