import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { type ErasedEvent, eraseEvents } from '../../../src/engine/deliveries/erase-events.ts';
import type { DeliveryNews } from '../../../src/engine/deliveries/run-news.ts';
import { removeDelivery } from '../../../src/engine/queue/remove.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { NEWS_SIGNAL } from '../../../src/platform/temporal/workflow-options.ts';
import { type RunningWorker, startWorker } from '../../../src/worker/start-worker.ts';
import { type ReceivingTenant, receivingTenant } from '../../support/receiving-tenant.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { testEventIdHash } from '../../support/test-accounts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { fixtureBodyTo } from '../../support/upstream-fixtures.ts';
import { answer, eventually, type WebhookReceiver } from '../../support/webhook-receiver.ts';

let store: TestDatabase;
let worker: RunningWorker;
let environment: TestWorkflowEnvironment;
let tenant: ReceivingTenant;
let receiver: WebhookReceiver;
let endpoint: { id: string; secret: string };

beforeAll(async () => {
  store = await createTestDatabase(20);
  const { temporalAddress } = inject('infrastructure');
  environment = await TestWorkflowEnvironment.createFromExistingServer({ address: temporalAddress });
  worker = await startWorker(loadConfig(testSettings(store.url)), silentLogger);
});

afterAll(async () => {
  await worker?.stop();
  await environment?.teardown();
  await store?.close();
});

beforeEach(async () => {
  tenant = await receivingTenant(store.database);
  ({ receiver, endpoint } = tenant);
});

/** Stores bodies of upstream to the tenant of the test. */
const send = (...fixtures: string[]) =>
  insertBodies(
    store.database,
    fixtures.map((name) => fixtureBodyTo(tenant, name)),
  );

/** Changes the endpoint of the test, as a page does. */
const setEndpoint = (change: string) =>
  query(store.database, `update webhook_endpoints set ${change}, version = version + 1 where id = :id`, {
    id: endpoint.id,
  });

const setMode = (mode: string) =>
  query(store.database, 'update endpoint_health set mode = :mode where endpoint_id = :id', {
    id: endpoint.id,
    mode,
  });

async function lastDelivery() {
  const [row] = await query<{
    state: string;
    attempts: number;
    workflow_id: string;
    last_error: string | null;
  }>(
    store.database,
    `select state, attempts, workflow_id, last_error from deliveries where endpoint_id = :id
      order by created_at desc, id desc limit 1`,
    { id: endpoint.id },
  );
  return row;
}

describe('a delivery is a workflow that ends with the tenant having the event', () => {
  test('the webhook carries the stored bytes, all headers, and a signature that standardwebhooks verifies', async () => {
    await send('in_text_unicode');
    await eventually('one webhook', () => receiver.received.length, { is: 1 });
    const [webhook] = receiver.received;
    const headers = Object.fromEntries(
      Object.entries(webhook?.headers ?? {}).map(([name, value]) => [name, String(value)]),
    );
    const verified = new Webhook(endpoint.secret).verify(webhook?.body ?? '', headers) as {
      eventType: string;
    };
    expect(verified.eventType).toBe('message');
    expect(headers['x-service-signature']).toBe(headers['webhook-signature']);
    expect(headers['idempotency-key']).toBe(headers['webhook-id']);
    expect(headers['webhook-id']).toMatch(/^evt_[0-9a-f]{32}$/);
    expect(headers).toMatchObject({
      'x-service-event-type': 'message',
      'x-service-attempt': '1',
      'x-service-sequence': '1',
    });
    expect(() => new Webhook(endpoint.secret).verify(`${webhook?.body} `, headers)).toThrow();
    const [event] = await query<{ body: Buffer }>(
      store.database,
      'select body from events where waba_id = :wabaId',
      { wabaId: tenant.wabaId },
    );
    expect(event?.body.toString()).toBe(webhook?.body);
    await eventually('recorded', async () => (await lastDelivery())?.state, { is: 'delivered' });
  });

  test('failures are retried with the same id and bytes and a new attempt number until the endpoint accepts', async () => {
    let calls = 0;
    receiver.behave((webhook, response) => {
      calls += 1;
      return calls < 4
        ? answer([500, 429, 302][calls - 1] ?? 500)(webhook, response)
        : answer(204)(webhook, response);
    });
    await send('in_text');
    await eventually('four attempts', () => receiver.received.length, { is: 4 });
    const ids = new Set(receiver.received.map((webhook) => webhook.headers['webhook-id']));
    const bodies = new Set(receiver.received.map((webhook) => webhook.body));
    expect([ids.size, bodies.size]).toEqual([1, 1]);
    expect(receiver.received.map((webhook) => webhook.headers['x-service-attempt'])).toEqual([
      '1',
      '2',
      '3',
      '4',
    ]);
    await eventually('recorded', async () => (await lastDelivery())?.state, { is: 'delivered' });
    const attempts = await query<{ status_code: number }>(
      store.database,
      `select status_code from attempts where delivery_id = (select id from deliveries where endpoint_id = :id)
        order by attempt`,
      { id: endpoint.id },
    );
    expect(attempts.map((attempt) => attempt.status_code)).toEqual([500, 429, 302, 204]);
  });

  test('Retry-After is waited for', async () => {
    let calls = 0;
    receiver.behave((webhook, response) => {
      calls += 1;
      return calls === 1
        ? answer(503, { 'retry-after': '3' })(webhook, response)
        : answer(200)(webhook, response);
    });
    await send('in_text');
    await eventually('two attempts', () => receiver.received.length, { is: 2 });
    const [first, second] = receiver.received;
    expect((second?.arrivedMs ?? 0) - (first?.arrivedMs ?? 0)).toBeGreaterThan(2_900);
    await eventually('recorded', async () => (await lastDelivery())?.state, { is: 'delivered' });
  });

  test('an operator finds the workflow by eventId and reads there what is wrong', async () => {
    receiver.behave(answer(503, { 'retry-after': '30' }));
    await send('in_image_no_url');
    await eventually('first attempt', async () => (await lastDelivery())?.attempts, { is: 1 });
    const carrier = async () => (await lastDelivery())?.workflow_id ?? '';
    await eventually('its retries are a workflow', async () => (await carrier()).startsWith('delivery/'));
    const row = await lastDelivery();
    const [webhook] = receiver.received;
    const { eventId } = JSON.parse(webhook?.body ?? '{}') as { eventId: string };
    expect(row?.workflow_id).toBe(`delivery/${endpoint.id}/${webhook?.headers['x-service-delivery-id']}`);
    const hash = await testEventIdHash(store.database)(eventId);
    let found: string[] = [];
    await eventually('visible', async () => {
      const list = environment.client.workflow.list({
        query: `HeliographEventId = "${hash}" and ExecutionStatus = "Running"`,
      });
      found = [];
      for await (const workflow of list) found.push(workflow.workflowId);
      return found.length > 0;
    });
    expect(found).toContain(row?.workflow_id);
    const handle = environment.client.workflow.getHandle(row?.workflow_id ?? '');
    await eventually('the pending activity says why', async () => {
      const { raw } = await handle.describe();
      return (
        raw.pendingActivities?.some((a) => /503.*Next at|returned 503/.test(a.lastFailure?.message ?? '')) ??
        false
      );
    });
    await handle.cancel();
    await expect(handle.result()).rejects.toThrow('Workflow execution cancelled');
    expect((await handle.describe()).status.name).toBe('CANCELLED');
    expect((await lastDelivery())?.state).toBe('dropped');
  });

  test('410 switches the endpoint off and keeps its events; they go out once it is enabled', async () => {
    receiver.behave(answer(410));
    await send('in_text', 'in_text_unicode');
    const mode = async () =>
      (
        await query<{ mode: string }>(
          store.database,
          'select mode from endpoint_health where endpoint_id = :id',
          {
            id: endpoint.id,
          },
        )
      )[0]?.mode;
    await eventually('disabled', mode, { is: 'disabled' });
    await new Promise((resolve) => setTimeout(resolve, 500));
    const waiting = await query(store.database, 'select 1 from delivery_queue where endpoint_id = :id', {
      id: endpoint.id,
    });
    expect(waiting).toHaveLength(2);
    receiver.behave(answer(200));
    const before = receiver.received.length;
    await setMode('open');
    await eventually('both delivered', () => receiver.received.length === before + 2);
  });

  test('a run that is terminated loses nothing: a delivery loop attempts at the time, and the next failure has a new run', async () => {
    receiver.behave(answer(500, { 'retry-after': '2' }));
    await send('in_text');
    const run = await runOfLast();
    await environment.client.workflow.getHandle(run).terminate('test');
    const handle = environment.client.workflow.getHandle(run);
    await eventually('attempted again', () => receiver.received.length, { is: 2 });
    await eventually('shown again', async () => (await handle.describe()).status.name, { is: 'RUNNING' });
    receiver.behave(answer(200));
    await eventually('delivered', async () => (await handle.describe()).status.name, { is: 'COMPLETED' });
    expect((await lastDelivery())?.state).toBe('delivered');
  });
});

/** The run that shows the delivery whose first attempt has failed. */
async function runOfLast(): Promise<string> {
  await eventually('first attempt', async () => {
    const delivery = await lastDelivery();
    const isOurs = receiver.received.length === 1 && delivery?.state === 'pending';
    return isOurs && delivery.attempts === 1 && delivery.workflow_id?.startsWith('delivery/') === true;
  });
  return (await lastDelivery())?.workflow_id ?? '';
}

describe('a run ends when its delivery ends', () => {
  const statusOf = async (run: string) =>
    (await environment.client.workflow.getHandle(run).describe()).status.name;

  test('it waits while its endpoint is paused, and is completed soon after that takes deliveries again', async () => {
    receiver.behave(answer(503, { 'retry-after': '1' }));
    await send('in_text');
    const run = await runOfLast();
    await setMode('paused');
    await eventually('it says why it waits', async () => {
      const { raw } = await environment.client.workflow.getHandle(run).describe();
      return raw.pendingActivities?.some((a) => /paused/.test(a.lastFailure?.message ?? '')) ?? false;
    });
    expect(await statusOf(run)).toBe('RUNNING');
    receiver.behave(answer(200));
    await setMode('open');
    await eventually('completed', () => statusOf(run), { is: 'COMPLETED' });
    expect(await environment.client.workflow.getHandle(run).result()).toMatch(/^Delivered with 200/);
  });

  test('failed permanently is a failed run', async () => {
    await setEndpoint('retry_schedule_seconds = array[1]');
    receiver.behave(answer(500));
    await send('in_text');
    const run = await runOfLast();
    await eventually('failed', () => statusOf(run), { is: 'FAILED' });
    expect((await lastDelivery())?.state).toBe('failed');
  });

  test('dropped by a user is a cancelled run', async () => {
    receiver.behave(answer(503, { 'retry-after': '3' }));
    await send('in_text');
    const run = await runOfLast();
    const waiting = 'select delivery_id as id from delivery_queue where endpoint_id = :id';
    const [row] = await query<{ id: string }>(store.database, waiting, { id: endpoint.id });
    await store.database.transaction((trx) => removeDelivery(trx, row?.id ?? '', 'not wanted'));
    await eventually('cancelled', () => statusOf(run), { is: 'CANCELLED' });
  });

  test('erased with its log is a cancelled run', async () => {
    receiver.behave(answer(503, { 'retry-after': '3' }));
    await send('in_text');
    const run = await runOfLast();
    const events = await query<ErasedEvent>(
      store.database,
      'select event_day as day, event_uuid as id from delivery_queue where endpoint_id = :id',
      { id: endpoint.id },
    );
    const { deliveries } = await store.database.transaction((trx) => eraseEvents(trx, tenant.wabaId, events));
    expect(deliveries).toBe(1);
    const handle = environment.client.workflow.getHandle(run);
    await expect(handle.result()).rejects.toThrow('Workflow execution cancelled');
  });

  test('a report that it was dropped completes no run', async () => {
    receiver.behave(answer(503, { 'retry-after': '5' }));
    await send('in_text');
    const run = await runOfLast();
    const handle = environment.client.workflow.getHandle(run);
    const dropped: DeliveryNews = { end: 'dropped', summary: 'Dropped.' };
    await handle.signal(NEWS_SIGNAL, dropped);
    receiver.behave(answer(200));
    // Nothing was dropped in truth, so the next attempt decides.
    expect(await handle.result()).toMatch(/^Delivered with 200 at attempt 2/);
  });
});
