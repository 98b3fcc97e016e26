import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { expect, onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import {
  ACCOUNT,
  bodyOf,
  cartOrder,
  messageStatus,
  textMessage,
} from '../../support/load/upstream-bodies.ts';
import { makeOwnTemporal } from '../../support/own-temporal.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint, testEventIdHash } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import {
  answer,
  type Behaviour,
  eventually,
  startReceiver,
  type WebhookReceiver,
} from '../../support/webhook-receiver.ts';

async function installation(address: string, overrides: Record<string, string> = {}) {
  const { database, url } = await seededDatabase(20);
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  await addEndpoint(database, ACCOUNT.wabaId, `${receiver.url}/hook`);
  const settings = testSettings(url, { HELIOGRAPH_TEMPORAL_ADDRESS: address, ...overrides });
  return { database, receiver, config: loadConfig(settings) };
}

const send = (database: Database, id: string) =>
  insertBodies(database, [bodyOf(ACCOUNT, [textMessage(id, 'x')])]);

const isSettled = async (database: Database) =>
  (await query(database, 'select 1 from delivery_queue limit 1')).length === 0;

/** Ms from the intake of an event to its arrival. */
async function latencyMs(database: Database, receiver: WebhookReceiver, id: string): Promise<number> {
  const has = () => receiver.received.find(({ headers }) => headers['x-service-event-id'] === id);
  const startMs = performance.now();
  await send(database, id);
  await eventually(`${id} arrives`, () => has() !== undefined);
  return (has()?.arrivedMs ?? Number.POSITIVE_INFINITY) - startMs;
}

/** Refuses the first attempt of each event. */
const failOnce: Behaviour = (webhook, response) =>
  answer(webhook.headers['x-service-attempt'] === '1' ? 503 : 200)(webhook, response);

const workflowsOf = async (client: Client, database: Database, id: string) => {
  const hash = await testEventIdHash(database)(id);
  return (await client.workflow.count(`HeliographEventId = '${hash}'`)).count;
};

const attemptsOf = (receiver: WebhookReceiver, id: string) =>
  receiver.received.filter(({ headers }) => headers['x-service-event-id'] === id);

test('with Temporal away from the start: webhooks at once, also after idleness, retries at their times, and all in Temporal once it is there', async () => {
  const temporal = await makeOwnTemporal();
  const { database, receiver, config } = await installation(temporal.address);
  const starting = startWorker(config, silentLogger);
  onTestFinished(async () => (await starting).stop());
  await latencyMs(database, receiver, 'wamid.FIRST');
  await sleep(2_000);
  const idleMs = await latencyMs(database, receiver, 'wamid.IDLE');
  process.stdout.write(`without Temporal, after 2 s of idleness: ${Math.round(idleMs)} ms\n`);
  expect(idleMs).toBeLessThan(5_000);

  receiver.behave(failOnce);
  await send(database, 'wamid.FAILS');
  await eventually('retried and settled', async () => {
    return attemptsOf(receiver, 'wamid.FAILS').length === 2 && (await isSettled(database));
  });
  const [first, second] = attemptsOf(receiver, 'wamid.FAILS');
  const waitedMs = (second?.arrivedMs ?? 0) - (first?.answeredMs ?? 0);
  // The schedule says a second, give or take a fifth.
  expect(waitedMs).toBeGreaterThan(700);
  expect(waitedMs).toBeLessThan(8_000);

  await temporal.start();
  await starting;
  const client = await temporal.connect();
  const running = async (type: string) =>
    (await client.workflow.count(`WorkflowType = '${type}' and ExecutionStatus = 'Running'`)).count;
  await eventually('the session is shown', () => running('deliverSession'), { is: 1 });
  receiver.behave(answer(503, { 'retry-after': '60' }));
  await send(database, 'wamid.SHOWN');
  await eventually('a workflow waits for its retry', () => running('deliverEvent'), { is: 1 });
  expect(await query(database, 'select run from delivery_queue')).toEqual([{ run: 'room' }]);
});

test('without Temporal orders are released after seconds, in their order and once', async () => {
  const temporal = await makeOwnTemporal();
  const { database, receiver, config } = await installation(temporal.address);
  const starting = startWorker(config, silentLogger);
  onTestFinished(async () => (await starting).stop());
  const orders = () => receiver.received.filter(({ headers }) => headers['x-service-event-type'] === 'order');
  const carts = ['wamid.CART1', 'wamid.CART2', 'wamid.CART3'].map((id) => cartOrder(id, '7001'));
  for (const cart of carts) await insertBodies(database, [bodyOf(ACCOUNT, [cart])]);
  await eventually('all orders arrive', async () => orders().length === carts.length);
  expect(orders().map(({ headers }) => headers['x-service-sequence'])).toEqual(['1', '2', '3']);

  await temporal.start();
  await starting;
  const client = await temporal.connect();
  await eventually('no task is left', async () => {
    return (await query(database, 'select 1 from workflow_tasks')).length === 0;
  });
  await sleep(1_000);
  expect((await client.workflow.count(`ExecutionStatus = 'Failed'`)).count).toBe(0);
  expect(orders()).toHaveLength(carts.length);
});

test('Temporal stopped later: nothing stands still, what fails is retried by the loop in order, and nothing goes twice when it is back', async () => {
  const temporal = await makeOwnTemporal();
  await temporal.start();
  const { database, receiver, config } = await installation(temporal.address);
  const worker = await startWorker(config, silentLogger);
  onTestFinished(() => worker.stop());
  await latencyMs(database, receiver, 'wamid.BEFORE');
  await temporal.stop();
  await sleep(2_000);
  const idleMs = await latencyMs(database, receiver, 'wamid.AWAY');
  process.stdout.write(`Temporal stopped, after 2 s of idleness: ${Math.round(idleMs)} ms\n`);
  expect(idleMs).toBeLessThan(5_000);

  receiver.behave(failOnce);
  const steps = ['sent', 'delivered', 'read'];
  await insertBodies(
    database,
    steps.map((step) => bodyOf(ACCOUNT, [messageStatus('wamid.LADDER', step)])),
  );
  await eventually(
    'each was retried and delivered',
    async () => attemptsOf(receiver, 'wamid.LADDER').length >= 6 && (await isSettled(database)),
  );
  const order = () =>
    attemptsOf(receiver, 'wamid.LADDER').map(
      ({ headers }) => `${headers['x-service-sequence']}.${headers['x-service-attempt']}`,
    );
  const expected = ['1.1', '1.2', '2.1', '2.2', '3.1', '3.2'];
  expect(order()).toEqual(expected);

  await temporal.start();
  receiver.behave(answer(200));
  const client = await temporal.connect();
  await eventually('workflows are started again', async () => {
    await latencyMs(database, receiver, `wamid.BACK${performance.now()}`);
    return (await client.workflow.count(`WorkflowType = 'deliverEvent'`)).count > 1;
  });
  await eventually('settled', () => isSettled(database));
  expect(order()).toEqual(expected);
});

test('always: Temporal killed in the middle: each event goes once, in order, and nothing waits for Temporal', async () => {
  const temporal = await makeOwnTemporal();
  await temporal.start();
  const overrides = { HELIOGRAPH_DELIVERY_WORKFLOWS: 'always', HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '5000' };
  const { database, receiver, config } = await installation(temporal.address, overrides);
  receiver.behave(async (webhook, response) => {
    await sleep(50);
    return answer(200)(webhook, response);
  });
  const worker = await startWorker(config, silentLogger);
  onTestFinished(() => worker.stop());
  const steps = ['sent', 'delivered', 'read'];
  const messages = Array.from({ length: 20 }, (_, n) => n);
  const bodies = steps.flatMap((step) =>
    messages.map((n) => bodyOf(ACCOUNT, [messageStatus(`wamid.KILL${n}`, step)])),
  );
  await insertBodies(database, bodies);
  await eventually('in the middle', () => receiver.received.length >= 10);
  temporal.kill();
  await eventually(
    'all delivered',
    async () => receiver.received.length >= bodies.length && (await isSettled(database)),
  );
  expect(receiver.received).toHaveLength(bodies.length);
  for (const n of messages) {
    const sequences = attemptsOf(receiver, `wamid.KILL${n}`).map(
      ({ headers }) => headers['x-service-sequence'],
    );
    expect(sequences).toEqual(['1', '2', '3']);
  }
});

test('Temporal frozen while workflows are started: retries go by the loop, and workflows that come late make no attempt twice', async () => {
  const temporal = await makeOwnTemporal();
  await temporal.start();
  const { database, receiver, config } = await installation(temporal.address);
  const worker = await startWorker(config, silentLogger);
  onTestFinished(() => worker.stop());
  await latencyMs(database, receiver, 'wamid.BEFORE');
  const client = await temporal.connect();
  await eventually(
    'a workflow was there',
    async () => (await workflowsOf(client, database, 'wamid.BEFORE')) === 1,
  );

  temporal.freeze();
  receiver.behave((webhook, response) => {
    if (webhook.headers['x-service-attempt'] !== '1') return answer(200)(webhook, response);
    const isLater = webhook.headers['x-service-event-id'] === 'wamid.LATER';
    return answer(503, isLater ? { 'retry-after': '15' } : {})(webhook, response);
  });
  await send(database, 'wamid.SOON');
  await send(database, 'wamid.LATER');
  await eventually('retried by the loop', () => attemptsOf(receiver, 'wamid.SOON').length, {
    is: 2,
  });
  temporal.thaw();
  for (const id of ['wamid.SOON', 'wamid.LATER']) {
    await eventually(
      `the workflow of ${id} comes late`,
      async () => (await workflowsOf(client, database, id)) === 1,
    );
  }
  await eventually('settled', () => isSettled(database));
  const completed = async () =>
    (await client.workflow.count(`WorkflowType = 'deliverEvent' and ExecutionStatus = 'Completed'`)).count;
  await eventually('all workflows end', completed, { is: 3 });
  expect(attemptsOf(receiver, 'wamid.SOON')).toHaveLength(2);
  expect(attemptsOf(receiver, 'wamid.LATER')).toHaveLength(2);
});
