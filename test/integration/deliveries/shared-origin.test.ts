import { TestWorkflowEnvironment } from '@temporalio/testing';
import { expect, inject, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { createTestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';

const HANGS = {
  wabaId: '900000000000101',
  phoneNumberId: '800000000000111',
  displayPhoneNumber: '12025550100',
};
const HEALTHY = { ...HANGS, wabaId: '900000000000202', phoneNumberId: '800000000000221' };

/** What an endpoint may have in flight in one process when it is fast, and in any case. */
const FULL = 100;
const MANY = 10;

const insertMessages = (database: Database, account: typeof HANGS, count: number, name: string) =>
  insertBodies(
    database,
    Array.from({ length: count }, (_, n) => bodyOf(account, [textMessage(`wamid.${name}${n}`, 'x')])),
  );

async function startOneWorker() {
  const { database, url, close } = await createTestDatabase(20);
  onTestFinished(close);
  await seedFixtureAccounts(database);
  const { temporalAddress } = inject('infrastructure');
  const environment = await TestWorkflowEnvironment.createFromExistingServer({ address: temporalAddress });
  onTestFinished(() => environment.teardown());
  const settings = {
    HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '20000',
    HELIOGRAPH_DELIVERY_WORKFLOWS: 'auto',
  };
  const worker = await startWorker(loadConfig(testSettings(url, settings)), silentLogger);
  onTestFinished(() => worker.stop());
  return database;
}

test('a tenant’s endpoint that hangs keeps nothing from another’s at the same host and port', async () => {
  const database = await startOneWorker();
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  await addEndpoint(database, HANGS.wabaId, `${receiver.url}/hangs`);
  await addEndpoint(database, HEALTHY.wabaId, `${receiver.url}/healthy`);
  const isEmpty = async () => (await query(database, 'select 1 from delivery_queue limit 1')).length === 0;
  // Success by success it may have more in flight.
  await insertMessages(database, HANGS, 4 * FULL, 'WARM');
  await eventually('speed gained', async () => receiver.received.length >= 4 * FULL && (await isEmpty()));
  let hanging = 0;
  let ended = 0;
  receiver.behave((webhook, response) => {
    if (webhook.path === '/healthy') return answer(200)(webhook, response);
    hanging += 1;
    response.once('close', () => {
      ended += 1;
    });
    return null;
  });
  await insertMessages(database, HANGS, 4 * FULL, 'HANGS');
  // How many more there are depends on how fast the machine is; the sender's own test has 500.
  await eventually('many hang', () => hanging >= MANY);
  await insertMessages(database, HEALTHY, 30, 'HEALTHY');
  await eventually(
    'the other has its own',
    () => receiver.received.filter(({ path, status }) => path === '/healthy' && status === 200).length >= 30,
  );
  // Not one of those that hang ran into its time-out before that.
  expect(ended).toBe(0);
});
