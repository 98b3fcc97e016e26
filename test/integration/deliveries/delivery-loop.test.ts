import { setTimeout as sleep } from 'node:timers/promises';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { insertBodies } from '../../../src/inbound/inbox.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { type RunningWorker, startWorker } from '../../../src/worker/start-worker.ts';
import { bodyOf, messageStatus, textMessage } from '../../support/load/upstream-bodies.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver, type WebhookReceiver } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';
const ACCOUNT = { wabaId: WABA, phoneNumberId: '800000000000111', displayPhoneNumber: '12025550100' };
const OTHER_WABA = '900000000000202';
const OTHER = { ...ACCOUNT, wabaId: OTHER_WABA, phoneNumberId: '800000000000221' };
const STEPS = ['sent', 'delivered', 'read'];

let store: TestDatabase;
let workers: RunningWorker[];
let settings: Record<string, string>;
let environment: TestWorkflowEnvironment;
let receiver: WebhookReceiver;
let run = 0;

beforeAll(async () => {
  store = await createTestDatabase(20);
  await seedFixtureAccounts(store.database);
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
  run += 1;
  await store.database.raw('delete from delivery_queue; delete from webhook_endpoints');
  receiver = await startReceiver();
});

afterEach(() => receiver.close());

/** Ladders of three statuses for `count` messages, each status in a body of its own, interleaved. */
function ladders(account: typeof ACCOUNT, count: number): Buffer[] {
  const ids = Array.from({ length: count }, (_, n) => `wamid.LOOP${run}-${account.wabaId}-${n}`);
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

async function isQueueEmpty(): Promise<boolean> {
  return (await query(store.database, 'select 1 from delivery_queue limit 1')).length === 0;
}

describe('the delivery loop', () => {
  test('carries a flood, shared by two processes, in order and once each, and shows it in its workflow', async () => {
    await addEndpoint(store.database, WABA, `${receiver.url}/hook`);
    await insertBodies(store.database, ladders(ACCOUNT, 400));
    await eventually('everything there', () => receiver.received.length >= 1_200, 40_000);
    await eventually('everything settled', isQueueEmpty);
    expect(violations(receiver.received)).toEqual([]);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1_200);
    expect(receiver.received).toHaveLength(1_200);
    const carriers = await query<{ workflow_id: string; n: number }>(
      store.database,
      `select split_part(workflow_id, '/', 1) as workflow_id, count(*)::integer as n from deliveries
        where created_at > now() - interval '5 minutes' group by 1`,
    );
    const carried = Object.fromEntries(carriers.map((row) => [row.workflow_id, row.n]));
    expect(carried.delivery ?? 0).toBeLessThan(200);
    expect(carried['delivery-session']).toBeGreaterThan(0);
    const [{ id: workflowId } = { id: '' }] = await query<{ id: string }>(
      store.database,
      `select workflow_id as id from deliveries where workflow_id like 'delivery-session/%' order by finished_at desc limit 1`,
    );
    const [, id = '', runId] = /^(delivery-session\/[^/]+)\/(.+)$/.exec(workflowId) ?? [];
    const { status, raw } = await environment.client.workflow.getHandle(id, runId).describe();
    expect(status.name).toBe('RUNNING');
    expect(raw.pendingActivities?.map(({ activityType }) => activityType?.name)).toEqual(['showLoop']);
  });

  test('gives what fails again a run of its own, also in busy traffic, and delivers in order', async () => {
    await addEndpoint(store.database, WABA, `${receiver.url}/hook`);
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
    await insertBodies(store.database, ladders(ACCOUNT, 100));
    await eventually(
      'everything settled',
      async () => receiver.received.length >= 310 && (await isQueueEmpty()),
      40_000,
    );
    expect([...failures.values()]).toEqual([2, 2, 2, 2, 2]);
    const shown = () =>
      query(
        store.database,
        `select 1 from deliveries where attempts = 3 and created_at > now() - interval '1 minute'
            and workflow_id like 'delivery/%'`,
      );
    await eventually('each has its run', async () => (await shown()).length, { is: 5 });
    const delivered = receiver.received.filter(({ status }) => status === 200);
    expect(violations(delivered)).toEqual([]);
  });

  test('stops an endpoint that is down after a few attempts, probes it, and catches up in order once it is back', async () => {
    const down = await startReceiver(answer(503));
    try {
      const { id } = await addEndpoint(store.database, WABA, `${down.url}/down`);
      await addEndpoint(store.database, OTHER_WABA, `${receiver.url}/good`);
      await insertBodies(store.database, [...ladders(ACCOUNT, 200), ...ladders(OTHER, 200)]);
      await eventually('the good endpoint has all', () => receiver.received.length >= 600, 40_000);
      const modeOf = async () =>
        (
          await query<{ mode: string }>(store.database, 'select mode from webhook_endpoints where id = ?', [
            id,
          ])
        )[0]?.mode;
      await eventually('probing', modeOf, { is: 'probing' });
      const attemptsWhileDown = down.received.length;
      expect(attemptsWhileDown).toBeLessThan(200);
      const open = await query(store.database, `select 1 from delivery_queue where run = 'room'`);
      expect(open.length).toBeLessThanOrEqual(40);
      const [waiting] = await query<{ n: number }>(
        store.database,
        'select count(*)::integer as n from delivery_queue where endpoint_id = ?',
        [id],
      );
      expect(waiting?.n).toBe(600);
      down.behave(answer(200));
      await eventually('caught up', isQueueEmpty, 60_000);
      expect(await modeOf()).toBe('open');
      const delivered = down.received.filter(({ status }) => status === 200);
      expect(new Set(delivered.map(({ headers }) => headers['webhook-id'])).size).toBe(600);
      expect(violations(delivered)).toEqual([]);
      const alerts = await query<{ alert: string }>(
        store.database,
        'select alert from alert_notices where endpoint_id = ? order by created_at',
        [id],
      );
      expect(alerts.map(({ alert }) => alert)).toEqual(['failing', 'recovered']);
    } finally {
      await down.close();
    }
  });

  test('sends nothing to a paused endpoint, loses nothing of it, and goes on when it is enabled', async () => {
    const { id } = await addEndpoint(store.database, WABA, `${receiver.url}/hook`);
    await store.database.raw(`update webhook_endpoints set mode = 'paused' where id = ${id}`);
    await insertBodies(store.database, ladders(ACCOUNT, 50));
    await eventually('all waiting', async () => {
      const [row] = await query<{ n: number }>(
        store.database,
        'select count(*)::integer as n from delivery_queue',
      );
      return row?.n === 150;
    });
    await sleep(500);
    expect(receiver.received).toHaveLength(0);
    await store.database.raw(
      `update webhook_endpoints set mode = 'open', version = version + 1 where id = ${id}`,
    );
    await eventually('all sent', async () => receiver.received.length >= 150 && (await isQueueEmpty()));
    expect(violations(receiver.received)).toEqual([]);
  });

  test('sends with the custom headers, signature profile and rate limit of the endpoint', async () => {
    const { id } = await addEndpoint(store.database, WABA, `${receiver.url}/hook`);
    await store.database.raw(
      `update webhook_endpoints set signature_profile = 'github', rate_limit_per_second = 20 where id = ${id}`,
    );
    const bodies = Array.from({ length: 90 }, (_, n) =>
      bodyOf(ACCOUNT, [textMessage(`wamid.RATE${run}-${n}`, 'hello')]),
    );
    const startMs = performance.now();
    await insertBodies(store.database, bodies);
    await eventually('all sent', () => receiver.received.length >= 90, 30_000);
    expect(performance.now() - startMs).toBeGreaterThan(2_000);
    for (const { headers } of receiver.received)
      expect(headers['x-service-signature']).toMatch(/^sha256=[0-9a-f]{64}$/);
    for (const { headers } of receiver.received) expect(headers['webhook-signature']).toMatch(/^v1,/);
  });
});
