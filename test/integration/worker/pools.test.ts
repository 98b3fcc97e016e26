import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import type { DatabasePool } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, imageMessage, textMessage } from '../../support/load/upstream-bodies.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { drawIdsApart, testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, type Behaviour, eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

/** Of which activities and upkeep may have half. */
const CONNECTIONS = 10;

async function withEndpoint(behaviour: Behaviour) {
  const { database, url } = await testDatabase();
  await drawIdsApart(database);
  await seedFixtureAccounts(database);
  const receiver = await startReceiver(behaviour);
  onTestFinished(() => receiver.close());
  await addEndpoint(database, ACCOUNT.wabaId, receiver.url);
  return { database, url, receiver };
}

/** Locks a table; the result ends that. */
function lockTable(database: DatabasePool, table: string): () => Promise<void> {
  let isReleased = false;
  const holding = database.transaction(async (trx) => {
    await trx.raw(`lock table ${table} in access exclusive mode`);
    while (!isReleased) await trx.raw('select pg_sleep(0.2)');
  });
  return async () => {
    isReleased = true;
    await holding;
  };
}

/** How many connections of this name wait for the table. */
async function waiting(database: DatabasePool, table: string, application: string): Promise<number> {
  const rows = await query(
    database,
    `select 1 from pg_locks l join pg_stat_activity a on a.pid = l.pid
      where not l.granted and l.relation = cast(:table as regclass) and a.application_name = :application
        and l.database = (select oid from pg_database where datname = current_database())`,
    { table, application },
  );
  return rows.length;
}

async function startWorker(url: string) {
  const worker = startWorkerProcess(testSettings(url, { HELIOGRAPH_DATABASE_POOL_MAX: String(CONNECTIONS) }));
  onTestFinished(() => worker.stop());
  await worker.ready();
}

test('events are ingested, delivered and retried while activities hold all the connections that they may have', async () => {
  let answered = 0;
  const { database, url, receiver } = await withEndpoint((webhook, response) => {
    answered += 1;
    return answer(answered === 1 ? 500 : 200)(webhook, response);
  });
  const images = Array.from({ length: 30 }, (_, n) =>
    bodyOf(ACCOUNT, [imageMessage(`wamid.image-${n}`, `90${n}`)]),
  );
  await takeIn(database, ...images);
  await query(database, 'delete from delivery_queue');
  // Activities that store media wait for this table; deliveries do not need it.
  const release = lockTable(database, 'media');
  await startWorker(url);
  onTestFinished(release);
  // All that there are: the rest of the activities wait for one of them.
  const holdsAll = async () => (await waiting(database, 'media', 'heliograph-upkeep')) === CONNECTIONS / 2;
  await eventually('activities hold their connections', holdsAll);
  await insertBodies(database, [bodyOf(ACCOUNT, [textMessage('wamid.text', 'hello')])]);
  await eventually('delivered at the second attempt', () => receiver.received.length, { is: 2 });
  await eventually('they still hold them', holdsAll);
});

test('what starts workflows takes no connection of those that ingest and deliver; the watch of idle loops takes one', async () => {
  const { database, url, receiver } = await withEndpoint(answer(200));
  await startWorker(url);
  onTestFinished(lockTable(database, 'workflow_tasks'));
  // The loop that starts workflows, and the one that releases orders.
  await eventually('loops wait for it', async () => {
    return (await waiting(database, 'workflow_tasks', 'heliograph-upkeep')) >= 2;
  });
  await insertBodies(database, [bodyOf(ACCOUNT, [textMessage('wamid.text', 'hello')])]);
  await eventually('delivered', () => receiver.received.length, { is: 1 });
  for (let look = 0; look < 10; look += 1) {
    // The watch asks for all loops in one statement, and has one look at a time.
    expect(await waiting(database, 'workflow_tasks', 'heliograph-worker')).toBeLessThanOrEqual(1);
    await sleep(100);
  }
});
