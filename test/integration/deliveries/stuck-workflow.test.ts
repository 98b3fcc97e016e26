import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { makeRunClient } from '../../../src/engine/deliveries/dispatch/run-client.ts';
import { startRunUpkeep } from '../../../src/engine/deliveries/dispatch/run-upkeep.ts';
import type { DeliveryNews } from '../../../src/engine/deliveries/run-news.ts';
import { deliveryWorkflowId } from '../../../src/engine/queue/claim.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { dayOfUuidV7, uuidV7 } from '../../../src/platform/public-ids.ts';
import { startOrReplace, stuckReason } from '../../../src/platform/temporal/start-workflow.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { receivingTenant } from '../../support/receiving-tenant.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { freshTenant, testEventIdHash } from '../../support/test-accounts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually } from '../../support/webhook-receiver.ts';

const HOUR_MS = 3_600_000;

let store: TestDatabase;
let connection: Connection;
let client: Client;

beforeAll(async () => {
  store = await createTestDatabase(20);
  connection = await Connection.connect({ address: inject('infrastructure').temporalAddress });
  client = new Client({ connection });
});

afterAll(async () => {
  await connection?.close();
  await store?.close();
});

const newName = () => `stuck-${randomBytes(4).toString('hex')}`;

async function work(prefix: string) {
  const settings = testSettings(store.url, {
    HELIOGRAPH_DELIVERY_WORKFLOWS: 'always',
    HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX: prefix,
    HELIOGRAPH_WEBHOOK_RETRY_SCHEDULE_SECONDS: '300,300',
  });
  const worker = await startWorker(loadConfig(settings), silentLogger);
  let stopped: Promise<void> | null = null;
  const stop = () => {
    stopped ??= worker.stop();
    return stopped;
  };
  onTestFinished(stop);
  return { stop };
}

test('a retry whose run has no worker any more is made without it', async () => {
  const { account, receiver, endpoint } = await receivingTenant(store.database);
  receiver.behave(answer(500));
  const first = await work(newName());
  await insertBodies(store.database, [bodyOf(account, [textMessage('wamid.STUCK', 'x')])]);
  const waits = () =>
    query<{ id: string }>(
      store.database,
      `select d.workflow_id as id from delivery_queue q join deliveries d on d.id = q.delivery_id
        where q.endpoint_id = :id and q.state = 'retrying' and q.attempts = 1`,
      { id: endpoint.id },
    );
  await eventually('the retry waits', async () => (await waits()).length, { is: 1 });
  await first.stop();
  receiver.behave(answer(200));
  const due = `update delivery_queue set next_attempt_at = now() - interval '1 hour' where endpoint_id = :id`;
  await query(store.database, due, { id: endpoint.id });
  const second = await work(newName());
  await eventually('delivered', () => receiver.received.length, { is: 2 });
  expect(receiver.received[1]?.headers['x-service-attempt']).toBe('2');
  await second.stop();
});

test('the run of a delivery that ended without it ends as that did, and is terminated where it cannot go on', async () => {
  const { wabaId } = await freshTenant(store.database);
  const ids = [uuidV7(Date.now()), uuidV7(Date.now())];
  const rows = await query<{ id: string; endpointId: string; day: string; state: string }>(
    store.database,
    `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid, state)
     select day, id, '${wabaId}', 7, day, id, state
       from unnest(cast(:days as date[]), cast(:ids as uuid[]), array['delivered', 'dropped']) as d (day, id, state)
     returning id, endpoint_id as "endpointId", day, state`,
    { days: ids.map(dayOfUuidV7), ids },
  );
  const taskQueue = newName();
  const handles = await Promise.all(
    rows.map((row) => {
      const workflowId = deliveryWorkflowId({ ...row, deliveryId: row.id });
      return client.workflow.start('deliverEvent', { workflowId, taskQueue, args: [{}] });
    }),
  );
  const runTools = {
    client,
    logger: silentLogger,
    leaseMs: 1,
    taskQueue,
    onStart: () => undefined,
    publicUrl: 'https://gateway.example',
  };
  const runs = makeRunClient({ ...runTools, eventIdHash: testEventIdHash(store.database) });
  const asked: string[] = [];
  const noted = {
    ...runs,
    end: async (workflowId: string, news: DeliveryNews) => {
      asked.push(news.end ?? 'waits');
      return await runs.end(workflowId, news);
    },
    cancel: async (workflowId: string) => {
      asked.push('dropped');
      await runs.cancel(workflowId);
    },
  };
  const tools = { ...runTools, runs: noted, database: store.database, isLeader: () => true };
  const upkeep = startRunUpkeep(tools, { pollMs: 100, leastAgeMs: 0 });
  onTestFinished(upkeep.stop);
  for (const handle of handles) {
    await eventually('terminated', async () => (await handle.describe()).status.name, { is: 'TERMINATED' });
  }
  expect(new Set(asked)).toEqual(new Set(['delivered', 'dropped']));
});

describe('a workflow of a task', () => {
  test('is replaced when nobody polls its queue, and left alone where it only waits for its worker', async () => {
    const workflowId = newName();
    const start = (taskQueue: string) =>
      startOrReplace({
        client,
        logger: silentLogger,
        workflowType: 'enrichOrder',
        options: { workflowId, taskQueue, args: [{}] },
      });
    onTestFinished(async () => {
      await client.workflow.getHandle(workflowId).terminate();
    });
    expect(await start('before-deliveries')).toBe('started');
    expect(await start('before-deliveries')).toBe('running');
    expect(await start('now-deliveries')).toBe('replaced');
    expect(await start('now-deliveries')).toBe('running');
    expect((await client.workflow.getHandle(workflowId).describe()).taskQueue).toBe('now-deliveries');
  });

  const nowMs = Date.now();
  const time = (agoMs: number) => ({ seconds: Math.floor((nowMs - agoMs) / 1_000) });
  const cases: [string, object, boolean][] = [
    [
      'its task was not done for an hour',
      { pendingWorkflowTask: { originalScheduledTime: time(HOUR_MS) } },
      true,
    ],
    ['its task is new', { pendingWorkflowTask: { originalScheduledTime: time(1_000) } }, false],
    [
      'an activity was paused yesterday',
      { pendingActivities: [{ pauseInfo: { pauseTime: time(24 * HOUR_MS) } }] },
      true,
    ],
    [
      'an activity was just paused',
      { pendingActivities: [{ pauseInfo: { pauseTime: time(1_000) } }] },
      false,
    ],
    [
      'an activity is retried for days',
      { pendingActivities: [{ scheduledTime: time(72 * HOUR_MS) }] },
      false,
    ],
  ];
  test.each(cases)('may be one that cannot go on: %s', (_, raw, isStuck) => {
    expect(stuckReason({ taskQueue: 'q', raw: raw as never }, 'q', nowMs) !== null).toBe(isStuck);
  });
});
