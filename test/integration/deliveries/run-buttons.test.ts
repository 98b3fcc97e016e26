import type { Client } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { connectTemporal } from '../../../src/platform/temporal/worker-connection.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { ACCOUNT, bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { pauseActivity, resetRun } from '../../support/run-buttons.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { drawIdsApart, seededWorkerDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';

/** A worker, and a delivery whose first attempt was answered 503; the next one is due in so many seconds. */
async function failedOnce(retryAfterSeconds: number) {
  const { database, url } = await seededWorkerDatabase(20);
  await drawIdsApart(database);
  const receiver = await startReceiver(answer(503, { 'retry-after': String(retryAfterSeconds) }));
  onTestFinished(() => receiver.close());
  const { id: endpointId } = await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/hook`);
  const config = loadConfig(testSettings(url));
  const { client, connection } = await connectTemporal(config.temporal);
  onTestFinished(() => connection.close());
  const worker = await startWorker(config, silentLogger);
  onTestFinished(() => worker.stop());
  await insertBodies(database, [bodyOf(ACCOUNT, [textMessage('wamid.BUTTON', 'x')])]);
  const delivery = async () => {
    const [row] = await query<{ state: string; attempts: number; run: string | null }>(
      database,
      'select state, attempts, workflow_id as run from deliveries',
    );
    return row;
  };
  let run = '';
  await eventually('it failed once and its run waits', async () => {
    run = (await delivery())?.run ?? '';
    return run.startsWith('delivery/') && (await pendingOf(client, run)).some(({ attempt }) => attempt === 2);
  });
  const attempts = () => receiver.received.map(({ headers }) => headers['x-service-attempt']);
  const statusOf = async (id = run) =>
    (
      await client.workflow
        .getHandle(id)
        .describe()
        .catch(() => null)
    )?.status.name ?? 'none';
  return { client, receiver, endpointId, run, delivery, attempts, statusOf };
}

async function pendingOf(client: Client, run: string) {
  const { raw } = await client.workflow.getHandle(run).describe();
  return raw.pendingActivities ?? [];
}

test('Reset makes no attempt before its time, and the new run ends with the delivery', async () => {
  const { client, receiver, run, delivery, attempts, statusOf } = await failedOnce(15);
  const old = await client.workflow.getHandle(run).describe();
  const runId = await resetRun(client, run);
  expect(runId).not.toBe(old.runId);
  expect((await client.workflow.getHandle(run, old.runId).describe()).status.name).toBe('TERMINATED');
  expect(attempts()).toEqual(['1']);
  receiver.behave(answer(200));
  await eventually('the new run is completed', statusOf, { is: 'COMPLETED' });
  expect((await client.workflow.getHandle(run).describe()).runId).toBe(runId);
  expect(attempts()).toEqual(['1', '2']);
  const [first, second] = receiver.received;
  expect((second?.arrivedMs ?? 0) - (first?.arrivedMs ?? 0)).toBeGreaterThan(14_900);
  expect(await delivery()).toMatchObject({ state: 'delivered', attempts: 2 });

  // Also of a run that has ended: the webhook is not sent again.
  await resetRun(client, run);
  await eventually('it is completed again', statusOf, { is: 'COMPLETED' });
  expect(await client.workflow.getHandle(run).result()).toMatch(/^Delivered with 200/);
  expect(attempts()).toEqual(['1', '2']);
});

test('Pause of an activity does not hold the delivery back, and its run ends with it', async () => {
  const { client, receiver, run, delivery, attempts, statusOf } = await failedOnce(3);
  receiver.behave(answer(200));
  await pauseActivity(client, run);
  await eventually('it is paused', async () => (await pendingOf(client, run)).some(({ paused }) => paused));
  await eventually('delivered all the same', async () => (await delivery())?.state, {
    is: 'delivered',
  });
  expect(attempts()).toEqual(['1', '2']);
  await eventually('its run is completed', statusOf, { is: 'COMPLETED' });
});

test('no button on the run of an endpoint changes what waits', async () => {
  const { client, receiver, endpointId, run, delivery, attempts, statusOf } = await failedOnce(8);
  const shown = `endpoint/${endpointId}`;
  await eventually('its endpoint has a run', () => statusOf(shown), { is: 'RUNNING' });
  await resetRun(client, shown);
  expect(await statusOf(shown)).toBe('RUNNING');
  await client.workflow.getHandle(shown).cancel();
  await eventually('cancelled', () => statusOf(shown), { is: 'CANCELLED' });
  expect(await delivery()).toMatchObject({ state: 'pending', attempts: 1 });
  await eventually('the next failed attempt starts a new one', async () => {
    return attempts().length > 1 && (await statusOf(shown)) === 'RUNNING';
  });
  await client.workflow.getHandle(shown).terminate();
  receiver.behave(answer(200));
  await eventually('delivered', () => statusOf(run), { is: 'COMPLETED' });
});
