import type { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { deliveryWorkflowId } from '../../../src/engine/queue/claim.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { connectTemporal } from '../../../src/platform/temporal/worker-connection.ts';
import { taskQueues } from '../../../src/platform/temporal/workflow-options.ts';
import { type RunningWorker, startWorker } from '../../../src/worker/start-worker.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { type ReceivingTenant, receivingTenant } from '../../support/receiving-tenant.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually } from '../../support/webhook-receiver.ts';

/** A held attempt waits for its run for two seconds, and not for a minute. */
const SOON_MS = 45_000;

let store: TestDatabase;
let connection: NativeConnection;
let client: Client;
let queues: ReturnType<typeof taskQueues>;
let worker: RunningWorker;
let tenant: ReceivingTenant;

beforeAll(async () => {
  store = await createTestDatabase(20);
  const config = loadConfig(testSettings(store.url, { HELIOGRAPH_DELIVERY_WORKFLOWS: 'always' }));
  ({ connection, client } = await connectTemporal(config.temporal));
  queues = taskQueues(config.temporal.taskQueuePrefix);
  worker = await startWorker(config, silentLogger);
});

afterAll(async () => {
  await worker?.stop();
  await connection?.close();
  await store?.close();
});

beforeEach(async () => {
  tenant = await receivingTenant(store.database);
});

async function queued() {
  return await query<{ deliveryId: string; endpointId: string }>(
    store.database,
    'select delivery_id as "deliveryId", endpoint_id as "endpointId" from delivery_queue where endpoint_id = :id',
    { id: tenant.endpoint.id },
  );
}

const change = (column: string) =>
  query(store.database, `update webhook_endpoints set ${column}, version = version + 1 where id = :id`, {
    id: tenant.endpoint.id,
  });

const setMode = (mode: string) =>
  query(store.database, 'update endpoint_health set mode = :mode where endpoint_id = :id', {
    id: tenant.endpoint.id,
    mode,
  });

const takeIn = (id: string) => insertBodies(store.database, [bodyOf(tenant.account, [textMessage(id, 'x')])]);

describe('a delivery that is claimed while an earlier workflow of it still ends', () => {
  test('is sent soon: a 410 that came while the endpoint was edited costs no minute', async () => {
    const { receiver } = tenant;
    receiver.behave(async (webhook, response) => {
      if (receiver.received.length > 1) return answer(200)(webhook, response);
      await change(`description = 'edited'`);
      return answer(410)(webhook, response);
    });
    await takeIn('wamid.EDITED');
    await eventually(
      'settled',
      async () => receiver.received.length > 1 && (await queued()).length === 0,
      SOON_MS,
    );
    expect(receiver.received).toHaveLength(2);
  });

  test('is sent at once while an earlier run of it is open, and once', async () => {
    await setMode('paused');
    await takeIn('wamid.LINGERS');
    await eventually('it waits', async () => (await queued()).length, { is: 1 });
    const [before] = await queued();
    const workflowId = before === undefined ? '' : deliveryWorkflowId(before);
    const earlier = await client.workflow.start('deliverEvent', {
      workflowId,
      taskQueue: queues.deliveries,
      // It is open and does nothing, as one whose last task is still on its way.
      startDelay: '1 hour',
    });
    onTestFinished(async () => void (await earlier.terminate('it has ended')));
    await setMode('open');
    await eventually('settled', async () => (await queued()).length === 0, SOON_MS);
    expect(tenant.receiver.received).toHaveLength(1);
  });
});
