import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { countRuns } from '../../../src/features/endpoints/endpoint-statistics.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { connectTemporal } from '../../../src/platform/temporal/worker-connection.ts';
import { taskQueues } from '../../../src/platform/temporal/workflow-options.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { bodyOf, messageStatus, paymentStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import { openDeliveries, type ReceivingTenant, receivingTenant } from '../../support/receiving-tenant.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { testEventIdHash } from '../../support/test-accounts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import {
  answer,
  eventually,
  type ReceivedWebhook,
  type WebhookReceiver,
} from '../../support/webhook-receiver.ts';

/** Slower than the allowance of one core fills up. */
const CALM_MS = 400;

let store: TestDatabase;
let connection: NativeConnection;
let client: Client;
let tenant: ReceivingTenant;
let receiver: WebhookReceiver;
let sent = 0;

beforeAll(async () => {
  store = await createTestDatabase(20);
  ({ connection, client } = await connectTemporal(loadConfig(testSettings(store.url)).temporal));
});

afterAll(async () => {
  await connection?.close();
  await store?.close();
});

beforeEach(async () => {
  tenant = await receivingTenant(store.database);
  ({ receiver } = tenant);
});

/** Runs a worker for one test; returns what counts its workflows of deliveries. */
async function work(workflows: string) {
  const settings = testSettings(store.url, { HELIOGRAPH_DELIVERY_WORKFLOWS: workflows });
  const worker = await startWorker(loadConfig(settings), silentLogger);
  onTestFinished(() => worker.stop());
  const { deliveries } = taskQueues(settings.HELIOGRAPH_TEMPORAL_TASK_QUEUE_PREFIX ?? '');
  const filter = `TaskQueue = '${deliveries}' and WorkflowType = 'deliverEvent'`;
  return { started: async () => (await client.workflow.count(filter)).count };
}

async function send(): Promise<string> {
  sent += 1;
  const eventId = `wamid.HEAD${sent}-${process.pid}-${Date.now()}`;
  await insertBodies(store.database, [bodyOf(tenant.account, [textMessage(eventId, 'x')])]);
  return eventId;
}

const webhooksOf = (eventId: string) =>
  receiver.received.filter(({ headers }) => headers['x-service-event-id'] === eventId);

const isSettled = async () => (await openDeliveries(store.database, tenant)) === 0;

async function workflowsOf(eventId: string) {
  const found = [];
  const hash = await testEventIdHash(store.database)(eventId);
  for await (const workflow of client.workflow.list({ query: `HeliographEventId = '${hash}'` })) {
    found.push(workflow);
  }
  return found;
}

async function resultOf(eventId: string): Promise<string> {
  await eventually(`one completed workflow of ${eventId}`, async () => {
    const [workflow, other] = await workflowsOf(eventId);
    return other === undefined && workflow?.status.name === 'COMPLETED';
  });
  const [workflow] = await workflowsOf(eventId);
  return await client.workflow.getHandle(workflow?.workflowId ?? '').result();
}

describe('auto', () => {
  test.each([
    ['faster than the workflow starts', 0],
    ['about as slow', 30],
    ['slower', 700],
  ])(
    'calm traffic has one completed workflow per delivery, with the result of its one POST: the receiver is %s',
    async (_, answerAfterMs) => {
      await work('auto');
      receiver.behave(async (webhook, response) => {
        await sleep(answerAfterMs);
        return answer(202)(webhook, response);
      });
      const eventIds: string[] = [];
      for (let n = 0; n < 5; n += 1) {
        await sleep(CALM_MS);
        eventIds.push(await send());
      }
      for (const eventId of eventIds) {
        expect(await resultOf(eventId)).toBe('Delivered with 202 at attempt 1.');
        expect(webhooksOf(eventId)).toHaveLength(1);
      }
      expect(await isSettled()).toBe(true);
    },
  );

  test('the workflow of a first attempt that failed goes on with the retries, as the only one', async () => {
    await work('auto');
    receiver.behave((webhook, response) =>
      answer(webhook.headers['x-service-attempt'] === '1' ? 503 : 200)(webhook, response),
    );
    const eventId = await send();
    expect(await resultOf(eventId)).toBe('Delivered with 200 at attempt 2.');
    expect(webhooksOf(eventId)).toHaveLength(2);
  });
});

test('always: every POST is made while a task of its workflow runs, once', async () => {
  const { started } = await work('always');
  const pending = noteTasksOfPosts();
  const before = await started();
  for (let n = 0; n < 20; n += 1) await send();
  await eventually('all delivered', async () => receiver.received.length >= 20 && (await isSettled()));
  expect(receiver.received).toHaveLength(20);
  expect(pending).toEqual(Array.from({ length: 20 }, () => WORKFLOW_TASK_STARTED));
  await eventually('each has its own', async () => (await started()) - before, { is: 20 });
});

/** temporal.api.enums.v1.PendingWorkflowTaskState */
const WORKFLOW_TASK_STARTED = 2;

test('always: an attempt that takes longer is seen as a pending activity, and made once', async () => {
  await work('always');
  receiver.behave(async (webhook, response) => {
    const handle = handleOf(webhook);
    const isPending = async () =>
      (await handle.describe()).raw.pendingActivities?.[0]?.activityType?.name === 'attemptDelivery';
    await eventually('its activity is pending', isPending);
    return answer(200)(webhook, response);
  });
  const eventId = await send();
  expect(await resultOf(eventId)).toBe('Delivered with 200 at attempt 1.');
  expect(receiver.received).toHaveLength(1);
});

/** What the workflow task of each webhook's run is doing while it is answered. */
function noteTasksOfPosts(): unknown[] {
  const states: unknown[] = [];
  receiver.behave(async (webhook, response) => {
    const { raw } = await handleOf(webhook).describe();
    states.push(raw.pendingWorkflowTask?.state);
    return answer(200)(webhook, response);
  });
  return states;
}

function handleOf({ headers }: ReceivedWebhook) {
  return client.workflow.getHandle(`delivery/${tenant.endpoint.id}/${headers['x-service-delivery-id']}`);
}

test('an endpoint decides for itself: always inside the run, although the installation says auto', async () => {
  await alwaysFor(tenant.endpoint.id);
  const { started } = await work('auto');
  const pending = noteTasksOfPosts();
  const before = await started();
  for (let n = 0; n < 10; n += 1) await send();
  await eventually('all delivered', async () => receiver.received.length >= 10 && (await isSettled()));
  expect(pending).toEqual(Array.from({ length: 10 }, () => WORKFLOW_TASK_STARTED));
  await eventually('each has its own', async () => (await started()) - before, { is: 10 });
  await eventually('the worker says so', async () => {
    const [worker] = await query<{ share: string }>(
      store.database,
      `select recent_with_run || ' of ' || recent_attempts as share from worker_processes`,
    );
    return worker?.share === '10 of 10';
  });
});

test('event types of an endpoint always have a run, and its other events are sent as they are without the setting', async () => {
  await query(
    store.database,
    `update webhook_endpoints set always_workflows_for = '{payment}', version = version + 1, updated_at = now()
      where id = :id`,
    { id: tenant.endpoint.id },
  );
  await work('auto');
  const states = new Map<string, unknown[]>();
  receiver.behave(async (webhook, response) => {
    const type = String(webhook.headers['x-service-event-type']);
    const { raw } = (await handleOf(webhook)
      .describe()
      .catch(() => null)) ?? { raw: null };
    states.set(type, [...(states.get(type) ?? []), raw?.pendingWorkflowTask?.state ?? null]);
    return answer(200)(webhook, response);
  });
  const items = Array.from({ length: 10 }, (_, n) => {
    const id = `wamid.TYPES${n}-${process.pid}-${Date.now()}`;
    return [paymentStatus(`${id}-p`, `ref-${id}`, 'captured'), messageStatus(id, 'sent')];
  });
  await insertBodies(store.database, [bodyOf(tenant.account, items.flat())]);
  await eventually('all delivered', async () => receiver.received.length >= 20 && (await isSettled()));
  expect(receiver.received).toHaveLength(20);
  expect(states.get('payment')).toEqual(Array.from({ length: 10 }, () => WORKFLOW_TASK_STARTED));
  expect(states.get('status')).toEqual(Array.from({ length: 10 }, () => null));
  const endpoint = {
    ...tenant.endpoint,
    wabaId: tenant.wabaId,
    deliveryWorkflows: null,
    alwaysWorkflowsFor: ['payment' as const],
  };
  await eventually('the log names their runs', async () => {
    const { deliveries, withRun } = await countRuns(store.database, endpoint);
    return deliveries === 10 && withRun === 10;
  });
});

test('a retry of a delivery that has no run waits for one where its endpoint asks for it', async () => {
  const eventId = `wamid.HEAD-RETRY-${process.pid}-${Date.now()}`;
  await takeIn(store.database, bodyOf(tenant.account, [textMessage(eventId, 'x')]));
  const retryIn = (wait: string) =>
    query(
      store.database,
      `update delivery_queue set state = 'retrying', attempts = 1, next_attempt_at = now() + interval '${wait}'
        where endpoint_id = :id`,
      { id: tenant.endpoint.id },
    );
  await retryIn('1 hour');
  await work('auto');
  await alwaysFor(tenant.endpoint.id);
  const pending = noteTasksOfPosts();
  await retryIn('0 seconds');
  expect(await resultOf(eventId)).toBe('Delivered with 200 at attempt 2.');
  expect(pending).toEqual([WORKFLOW_TASK_STARTED]);
});

const alwaysFor = (id: string) =>
  query(
    store.database,
    `update webhook_endpoints set delivery_workflows = 'always', version = version + 1, updated_at = now()
      where id = :id`,
    { id },
  );
