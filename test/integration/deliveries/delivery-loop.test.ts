import { setTimeout as sleep } from 'node:timers/promises';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query, queryColumn } from '../../../src/platform/postgres/sql.ts';
import { type RunningWorker, startWorker } from '../../../src/worker/start-worker.ts';
import { bodyOf, messageStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import { openDeliveries, type ReceivingTenant, receivingTenant } from '../../support/receiving-tenant.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, type WebhookReceiver } from '../../support/webhook-receiver.ts';

const STEPS = ['sent', 'delivered', 'read'];

let store: TestDatabase;
let workers: RunningWorker[];
let settings: Record<string, string>;
let environment: TestWorkflowEnvironment;
let tenant: ReceivingTenant;
let receiver: WebhookReceiver;

beforeAll(async () => {
  store = await createTestDatabase(20);
  const { temporalAddress } = inject('infrastructure');
  environment = await TestWorkflowEnvironment.createFromExistingServer({ address: temporalAddress });
  settings = testSettings(store.url, {
    HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '8000',
    HELIOGRAPH_DELIVERY_WORKFLOWS: 'auto',
  });
  const config = loadConfig(settings);
  workers = await Promise.all([startWorker(config, silentLogger), startWorker(config, silentLogger)]);
});

afterAll(async () => {
  await Promise.all((workers ?? []).map((worker) => worker.stop()));
  await environment?.teardown();
  await store?.close();
});

beforeEach(async () => {
  tenant = await receivingTenant(store.database);
  ({ receiver } = tenant);
});

/** Ladders of three statuses for `count` messages, each status in a body of its own, interleaved. */
function ladders({ account }: ReceivingTenant, count: number): Buffer[] {
  const ids = Array.from({ length: count }, (_, n) => `wamid.LOOP-${account.wabaId}-${n}`);
  return STEPS.flatMap((step) => ids.map((id) => bodyOf(account, [messageStatus(id, step)])));
}

function violations(received: WebhookReceiver['received']): string[] {
  const last = new Map<string, { sequence: number; answeredMs: number | null }>();
  const found: string[] = [];
  for (const { headers, arrivedMs, answeredMs } of received) {
    const key = String(headers['x-service-event-id']);
    const sequence = Number(headers['x-service-sequence']);
    const before = last.get(key);
    if (before !== undefined && sequence < before.sequence)
      found.push(`${key}: ${sequence} after ${before.sequence}`);
    if (before?.answeredMs != null && before.answeredMs > arrivedMs)
      found.push(`${key}: ${sequence} too early`);
    last.set(key, { sequence, answeredMs });
  }
  return found;
}

/** On a busy machine Temporal opens it when thousands may have been delivered. */
async function untilSessionIsOpen(): Promise<void> {
  const other = await receivingTenant(store.database);
  const shown = `select 1 from deliveries where endpoint_id = :id and workflow_id like 'delivery-session/%'`;
  let n = 0;
  await eventually('the loop has its workflow', async () => {
    n += 1;
    await insertBodies(store.database, [bodyOf(other.account, [textMessage(`wamid.OPEN-${n}`, 'hello')])]);
    await eventually('it is delivered', () => openDeliveries(store.database, other), { is: 0 });
    return (await query(store.database, shown, { id: other.endpoint.id })).length > 0;
  });
}

const isQueueEmpty = async () => (await openDeliveries(store.database, tenant)) === 0;

describe('the delivery loop', () => {
  test('carries a flood, shared by two processes, in order and once each, and shows it in its workflow', async () => {
    await untilSessionIsOpen();
    await insertBodies(store.database, ladders(tenant, 400));
    await eventually('everything there', () => receiver.received.length >= 1_200);
    await eventually('everything settled', isQueueEmpty);
    expect(violations(receiver.received)).toEqual([]);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1_200);
    expect(receiver.received).toHaveLength(1_200);
    const carriers = await query<{ workflow_id: string; n: number }>(
      store.database,
      `select split_part(workflow_id, '/', 1) as workflow_id, count(*)::integer as n from deliveries
        where endpoint_id = :id group by 1`,
      { id: tenant.endpoint.id },
    );
    const carried = Object.fromEntries(carriers.map((row) => [row.workflow_id, row.n]));
    expect(carried.delivery ?? 0).toBeLessThan(200);
    expect(carried['delivery-session']).toBeGreaterThan(0);
    const [{ id: workflowId } = { id: '' }] = await query<{ id: string }>(
      store.database,
      `select workflow_id as id from deliveries where endpoint_id = :id and workflow_id like 'delivery-session/%'
        order by finished_at desc limit 1`,
      { id: tenant.endpoint.id },
    );
    const [, id = '', runId] = /^(delivery-session\/[^/]+)\/(.+)$/.exec(workflowId) ?? [];
    const { status, raw } = await environment.client.workflow.getHandle(id, runId).describe();
    expect(status.name).toBe('RUNNING');
    expect(raw.pendingActivities?.map(({ activityType }) => activityType?.name)).toEqual(['showLoop']);
    await eventually('it names the busiest endpoint', async () => {
      const shown = await environment.client.workflow.getHandle(id, runId).describe();
      const [details] = shown.raw.pendingActivities?.[0]?.heartbeatDetails?.payloads ?? [];
      const { busiestEndpoints } = JSON.parse(Buffer.from(details?.data ?? '{}').toString());
      return busiestEndpoints?.[0]?.endpointId === tenant.endpoint.id && busiestEndpoints[0].attempts > 100;
    });
  });

  test('gives what fails again a run of its own, also in busy traffic, and delivers in order', async () => {
    const failures = new Map<string, number>();
    receiver.behave((webhook, response) => {
      const id = String(webhook.headers['webhook-id']);
      const before = failures.get(id) ?? 0;
      const isChosen = failures.has(id) || failures.size < 5;
      const fails = Number(webhook.headers['x-service-sequence']) === 1 && isChosen && before < 2;
      if (!fails) return answer(200)(webhook, response);
      failures.set(id, before + 1);
      return answer(500)(webhook, response);
    });
    await insertBodies(store.database, ladders(tenant, 100));
    await eventually(
      'everything settled',
      async () => receiver.received.length >= 310 && (await isQueueEmpty()),
    );
    expect([...failures.values()]).toEqual([2, 2, 2, 2, 2]);
    const shown = () =>
      query(
        store.database,
        `select 1 from deliveries where endpoint_id = :id and attempts = 3 and workflow_id like 'delivery/%'`,
        { id: tenant.endpoint.id },
      );
    await eventually('each has its run', async () => (await shown()).length, { is: 5 });
    const delivered = receiver.received.filter(({ status }) => status === 200);
    expect(violations(delivered)).toEqual([]);
  });

  test('stops an endpoint that is down after a few attempts, probes it, and catches up in order once it is back', async () => {
    const good = await receivingTenant(store.database);
    receiver.behave(answer(503));
    const { id } = tenant.endpoint;
    await insertBodies(store.database, [...ladders(tenant, 200), ...ladders(good, 200)]);
    await eventually('the good endpoint has all', () => good.receiver.received.length >= 600);
    const modeOf = async () =>
      (
        await query<{ mode: string }>(
          store.database,
          'select mode from endpoint_health where endpoint_id = :id',
          {
            id,
          },
        )
      )[0]?.mode;
    await eventually('probing', modeOf, { is: 'probing' });
    expect(receiver.received.length).toBeLessThan(200);
    const open = `select 1 from delivery_queue where run = 'room' and endpoint_id = :id`;
    expect((await query(store.database, open, { id })).length).toBeLessThanOrEqual(40);
    expect(await openDeliveries(store.database, tenant)).toBe(600);
    receiver.behave(answer(200));
    await eventually('caught up', isQueueEmpty);
    expect(await modeOf()).toBe('open');
    const delivered = receiver.received.filter(({ status }) => status === 200);
    expect(new Set(delivered.map(({ headers }) => headers['webhook-id'])).size).toBe(600);
    expect(violations(delivered)).toEqual([]);
    const notices = async () =>
      await queryColumn<string>(
        store.database,
        'select alert from alert_notices where endpoint_id = :id order by created_at',
        { id },
      );
    await eventually('its tenant is notified', notices, { is: ['failing', 'recovered'] });
  });

  test('sends nothing to a paused endpoint, loses nothing of it, and goes on when it is enabled', async () => {
    const { id } = tenant.endpoint;
    await store.database.raw(`update endpoint_health set mode = 'paused' where endpoint_id = ${id}`);
    await insertBodies(store.database, ladders(tenant, 50));
    await eventually('all waiting', () => openDeliveries(store.database, tenant), { is: 150 });
    await sleep(500);
    expect(receiver.received).toHaveLength(0);
    await store.database.raw(`update endpoint_health set mode = 'open' where endpoint_id = ${id}`);
    await eventually('all sent', async () => receiver.received.length >= 150 && (await isQueueEmpty()));
    expect(violations(receiver.received)).toEqual([]);
  });

  test('sends with the custom headers and rate limit of the endpoint', async () => {
    const { id } = tenant.endpoint;
    await store.database.raw(`update webhook_endpoints set rate_limit_per_second = 20 where id = ${id}`);
    const bodies = Array.from({ length: 90 }, (_, n) =>
      bodyOf(tenant.account, [textMessage(`wamid.RATE-${n}`, 'hello')]),
    );
    const startMs = performance.now();
    await insertBodies(store.database, bodies);
    await eventually('all sent', () => receiver.received.length >= 90);
    expect(performance.now() - startMs).toBeGreaterThan(2_000);
    for (const { headers } of receiver.received) expect(headers['webhook-signature']).toMatch(/^v1,/);
  });
});
