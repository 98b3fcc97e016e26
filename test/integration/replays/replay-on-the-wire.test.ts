import { expect, onTestFinished, test } from 'vitest';
import { replayOf, startReplay } from '../../../src/features/replays/replays.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { createTestDatabase, drawIdsApart } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { eventually, startReceiver } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';

test('a replayed webhook has the id, bytes and sequence of the first one, and says that it is a replay', async () => {
  const store = await createTestDatabase(20);
  onTestFinished(store.close);
  const { database } = store;
  await seedFixtureAccounts(database);
  await drawIdsApart(database);
  const receiver = await startReceiver();
  onTestFinished(receiver.close);
  await addEndpoint(database, WABA, `${receiver.url}/hook`);
  const worker = await startWorker(loadConfig(testSettings(store.url)), silentLogger);
  onTestFinished(worker.stop);
  await insertBodies(database, [fixtureBody('in_text_unicode')]);
  await eventually('delivered', () => receiver.received.length, { is: 1 });
  const [first] = receiver.received;
  const deliveryIds = [String(first?.headers['x-service-delivery-id'])];
  const start = () =>
    startReplay({ database, actor: SYSTEM }, WABA, { deliveryIds }, 'test').catch(() => null);
  let replay = await start();
  await eventually('recorded', async () => {
    replay ??= await start();
    return replay !== null;
  });
  await eventually('delivered again', () => receiver.received.length, { is: 2 });
  const [, second] = receiver.received;
  expect(second?.body).toBe(first?.body);
  for (const name of ['webhook-id', 'x-service-sequence', 'x-service-event-id', 'x-service-attempt']) {
    expect(second?.headers[name]).toBe(first?.headers[name]);
  }
  expect(first?.headers).not.toHaveProperty('x-service-replay');
  expect(second?.headers).toMatchObject({ 'x-service-replay': 'true' });
  expect(second?.headers['x-service-delivery-id']).not.toBe(deliveryIds[0]);
  await eventually('recorded', async () => {
    const { outcomes, state } = await replayOf({ database }, WABA, replay?.replayId ?? '');
    return outcomes.delivered === 1 && state === 'done';
  });
});
