import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { SEARCH_ATTRIBUTE_NAMES } from '../../../src/platform/temporal/workflow-options.ts';
import { type RunningWorker, startWorker } from '../../../src/worker/start-worker.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { type ReceivingTenant, receivingTenant } from '../../support/receiving-tenant.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { eventually } from '../../support/webhook-receiver.ts';

/** Other test files use the server's default namespace. */
const NAMESPACE = `loss-${randomBytes(4).toString('hex')}`;

let store: TestDatabase;
let connection: Connection;
let worker: RunningWorker;
let tenant: ReceivingTenant;
let taken = 0;

beforeAll(async () => {
  store = await createTestDatabase(20);
  connection = await Connection.connect({ address: inject('infrastructure').temporalAddress });
  const { config } = await connection.workflowService.describeNamespace({ namespace: 'default' });
  const workflowExecutionRetentionPeriod = config?.workflowExecutionRetentionTtl ?? null;
  await connection.workflowService.registerNamespace({
    namespace: NAMESPACE,
    workflowExecutionRetentionPeriod,
  });
  const settings = testSettings(store.url, {
    HELIOGRAPH_TEMPORAL_NAMESPACE: NAMESPACE,
    HELIOGRAPH_DELIVERY_WORKFLOWS: 'always',
  });
  worker = await startWorker(loadConfig(settings), silentLogger);
});

afterAll(async () => {
  await worker?.stop();
  await connection?.close();
  await store?.close();
});

beforeEach(async () => {
  tenant = await receivingTenant(store.database);
  taken = 0;
});

/** Takes one message more in; not so many that their number matters. */
async function takeOne(): Promise<void> {
  taken += 1;
  await insertBodies(store.database, [bodyOf(tenant.account, [textMessage(`wamid.LOSS${taken}`, 'x')])]);
  await sleep(100);
}

async function missingAttributes(): Promise<string[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({
    namespace: NAMESPACE,
  });
  return SEARCH_ATTRIBUTE_NAMES.filter((name) => customAttributes?.[name] === undefined);
}

const everythingThere = () => tenant.receiver.received.length >= taken;

describe('a running worker whose Temporal lost its data', () => {
  test('registers the search attributes again, and delivers what waited, without being restarted', async () => {
    await takeOne();
    await eventually('delivered before', everythingThere);
    await connection.operatorService.removeSearchAttributes({
      namespace: NAMESPACE,
      searchAttributes: [...SEARCH_ATTRIBUTE_NAMES],
    });
    await eventually(
      'gone',
      async () => (await missingAttributes()).length === SEARCH_ATTRIBUTE_NAMES.length,
    );
    // Temporal may take a while to notice that they are gone; a start after that finds them missing.
    await eventually('registered again', async () => {
      await takeOne();
      return (await missingAttributes()).length === 0;
    });
    await eventually('everything delivered', everythingThere);
    expect(new Set(tenant.receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(taken);
  });

  test('makes the namespace again with the retention that it had, and delivers what waited', async () => {
    // A workflow that Temporal loses with the namespace; by its turn it would be started again in an hour.
    await store.database.raw(
      `insert into workflow_tasks (workflow_id, workflow_type, waba_id, event_id, argument, starts, next_start_at)
       values ('order/999999', 'enrichOrder', '${tenant.wabaId}', 'catalog', '{"orderId":"999999"}', 6,
               now() + interval '1 hour')`,
    );
    const describe = async () => await connection.workflowService.describeNamespace({ namespace: NAMESPACE });
    const before = await describe();
    await connection.operatorService.deleteNamespace({ namespace: NAMESPACE });
    await eventually('made again', async () => {
      await takeOne();
      const now = await describe().catch(() => null);
      return now !== null && now.namespaceInfo?.id !== before.namespaceInfo?.id;
    });
    // For some seconds after it was made, some of Temporal's caches do not know it.
    await eventually('it is known', async () => (await describe().catch(() => null)) !== null);
    expect((await describe()).config?.workflowExecutionRetentionTtl).toEqual(
      before.config?.workflowExecutionRetentionTtl,
    );
    await eventually('everything delivered', everythingThere);
    await eventually(
      'the task was woken',
      async () =>
        (
          await query(
            store.database,
            `select 1 from workflow_tasks
              where workflow_id = 'order/999999' and next_start_at > now() + interval '30 minutes'`,
          )
        ).length === 0,
    );
    const isRegistered = async () => (await missingAttributes().catch(() => null))?.length === 0;
    await eventually('the attributes too', isRegistered);
  });
});
