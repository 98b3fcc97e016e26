/**
 * Fills a database with a million waiting deliveries, half of them behind blocked heads, and prints plan and time of
 * the statements that every delivery goes through. Run: node bench/query-plans.ts
 */

import { type Database, openDatabase } from '../src/database/database.ts';
import { handOverDue } from '../src/database/delivery-claims.ts';
import { migrate } from '../src/database/migrate.ts';
import { execute, query } from '../src/database/sql.ts';
import { prepared } from '../src/database/statement.ts';
import { startTestInfrastructure } from '../src/embedded/test-infrastructure.ts';

const ROWS = 1_000_000;
const ENDPOINTS = 200;

/** Rows per statement: a statement may take 30 seconds. */
const STEP = 100_000;

const SLOTS = { endpointIds: [], free: [], otherwise: 10 };

const infrastructure = await startTestInfrastructure(() => {});
const database = openDatabase({ url: infrastructure.postgresUrl, poolMax: 4, applicationName: 'bench' });
try {
  await migrate(database);
  await fill();
  await explain();
  await time();
} finally {
  await database.destroy();
  await infrastructure.stop();
}

async function fill(): Promise<void> {
  await execute(database, `insert into tenants (business_name) values ('bench')`);
  await execute(database, `insert into wabas (waba_id, tenant_id) values ('1', 1)`);
  await execute(
    database,
    `insert into webhook_endpoints (waba_id, url, secret_sealed)
     select '1', 'https://bench.example', '' from generate_series(1, ?)`,
    [ENDPOINTS],
  );
  for (let from = 0; from < ROWS; from += STEP) await fillQueue(from);
  await execute(database, 'vacuum analyze delivery_queue');
}

/** Even rows are due heads of lanes of their own; odd rows wait behind ten blocked heads per endpoint. */
async function fillQueue(from: number): Promise<void> {
  await execute(
    database,
    `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid,
                                 attempts, next_attempt_at)
     select 1 + n % :endpoints, case when n % 2 = 0 then 'own ' || n else 'blocked ' || (n / :endpoints) % 10 end,
            case when n % 2 = 0 then 'due' when n < 20 * :endpoints then 'retrying' else 'queued' end,
            true, current_date, gen_random_uuid(), current_date, gen_random_uuid(), 1, now() + interval '1 hour'
       from generate_series(cast(:from as integer), cast(:to as integer)) as n on conflict do nothing`,
    { endpoints: ENDPOINTS, from, to: from + STEP - 1 },
  );
}

async function explain(): Promise<void> {
  const statements: string[] = [];
  const spy: Database = {
    ...database,
    raw: async (text, bindings) => {
      const { text: statement, values } = prepared(text, bindings ?? []);
      statements.push(statement.replace(/\$(\d+)/g, (_, n) => String(values[Number(n) - 1])));
      return await database.raw(text, bindings);
    },
  };
  await handOverDue(spy, { limit: 100, firstAttemptsPerEndpoint: 10, slots: SLOTS });
  const [filled] = statements;
  if (filled === undefined) throw new Error('the hand-over ran no statement');
  const plan = await query<{ 'QUERY PLAN': string }>(
    database,
    `explain (analyze, buffers, costs off) ${filled}`,
  );
  for (const row of plan) process.stdout.write(`${row['QUERY PLAN']}\n`);
}

async function time(): Promise<void> {
  const [count] = await query<{ n: string }>(database, 'select count(*) as n from delivery_queue');
  process.stdout.write(`\nrows in the queue: ${count?.n}\n`);
  const timesMs: number[] = [];
  for (let run = 0; run < 50; run += 1) {
    const start = performance.now();
    await handOverDue(database, {
      limit: 1_000_000,
      firstAttemptsPerEndpoint: 10,
      slots: SLOTS,
    });
    timesMs.push(performance.now() - start);
  }
  timesMs.sort((a, b) => a - b);
  const at = (share: number) => timesMs[Math.floor(timesMs.length * share)]?.toFixed(1);
  process.stdout.write(`hand-over of due deliveries: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms\n`);
}
