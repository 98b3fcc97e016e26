import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query, queryOnly } from '../../../src/platform/postgres/sql.ts';
import { countingServer } from '../../support/counting-server.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { newQueuedRow, queueRows } from '../../support/queued-rows.ts';
import { openDeliveries, receivingTenant } from '../../support/receiving-tenant.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually } from '../../support/webhook-receiver.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

const FURTHER = 3;
/** Figures and alerts are read every 30 s. */
const SECONDS = 30;
const WINDOWS = 4;

/** What all processes together began in this database, and when by its clock. */
async function transactions(database: Database): Promise<{ count: number; atMs: number }> {
  await database.raw('select pg_stat_force_next_flush()');
  return await queryOnly<{ count: number; atMs: number }>(
    database,
    `select (xact_commit + xact_rollback)::float8 as count, extract(epoch from clock_timestamp())::float8 * 1000 as "atMs"
       from pg_stat_database where datname = current_database()`,
  );
}

/**
 * How many begin in a second: in the first window with at most so many, else in the best of all. What a start leaves to be
 * done comes late on a busy machine.
 */
async function perSecond(database: Database, atMost: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let window = 0; window < WINDOWS && least > atMost; window += 1) {
    const before = await transactions(database);
    await sleep(SECONDS * 1_000);
    const after = await transactions(database);
    least = Math.min(least, (after.count - before.count) / ((after.atMs - before.atMs) / 1_000));
  }
  return least;
}

async function startWorkers(url: string, count: number): Promise<WorkerProcess[]> {
  const settings = testSettings(url);
  const workers = Array.from({ length: count }, () => startWorkerProcess(settings));
  onTestFinished(async () => void (await Promise.all(workers.map((worker) => worker.stop()))));
  for (const worker of workers) await worker.ready();
  return workers;
}

/** A further one: its heartbeat every two seconds, and looks every ten. */
const MOST_PER_SECOND = { first: 5, further: 1 };

/** An endpoint that fails; what waits for its next retry holds up another of its lane. */
async function failingEndpoint(database: Database): Promise<void> {
  await seedFixtureAccounts(database);
  const { id } = await addEndpoint(database, '900000000000101', 'https://fails.example');
  await queueRows(database, [newQueuedRow(id, 'one lane'), newQueuedRow(id, 'one lane')]);
  await database.raw(
    `update delivery_queue set state = 'retrying', attempts = 1, first_failed_at = now(), blocks = 'other',
            next_attempt_at = now() + interval '1 hour' where state = 'due'`,
  );
  const past = `now() - interval '10 minutes'`;
  await database.raw(`update webhook_endpoints set updated_at = ${past}`);
  await database.raw(
    `update endpoint_health set failing_since = ${past}, mode_changed_at = ${past}, failing_notified = true`,
  );
}

test('an idle worker begins few transactions while an endpoint fails, and of several all but the leader fewer', async () => {
  // A server without vacuum: its transactions would count, and come as often as other tests leave it work.
  const { database, url } = await countingServer(['autovacuum=off']);
  await failingEndpoint(database);
  await startWorkers(url, 1);
  // What is done once after the start is done.
  await sleep(10_000);
  const alone = await perSecond(database, MOST_PER_SECOND.first);
  process.stdout.write(`transactions per second: ${alone.toFixed(1)} alone\n`);
  expect(alone).toBeLessThanOrEqual(MOST_PER_SECOND.first);
  await startWorkers(url, FURTHER);
  // Until each knows the others.
  await sleep(11_000);
  const all = await perSecond(database, alone + FURTHER * MOST_PER_SECOND.further);
  const further = (all - alone) / FURTHER;
  process.stdout.write(`and ${further.toFixed(1)} for each further\n`);
  expect(further).toBeLessThan(MOST_PER_SECOND.further);
});

test('what waits for a retry goes on when the leader, which looks for it, is killed', async () => {
  const { database, url } = await testDatabase();
  const tenant = await receivingTenant(database);
  const workers = await startWorkers(url, 2);
  tenant.receiver.behave(answer(503));
  await insertBodies(database, [bodyOf(tenant.account, [textMessage('wamid.retried', 'hello')])]);
  await eventually('it fails', () => tenant.receiver.received.length > 1);
  const [leader] = await query<{ id: string }>(
    database,
    'select id from worker_processes order by id limit 1',
  );
  const killed = workers.find(({ child }) => leader?.id.endsWith(`:${child.pid}`));
  expect(killed).toBeDefined();
  await killed?.kill();
  tenant.receiver.behave(answer(200));
  await eventually('it is delivered', () => openDeliveries(database, tenant), { is: 0 });
});
