import { createHmac } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eraseEvents, quietEvents } from '../../../src/engine/deliveries/erase-events.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { NotYetErased } from '../../../src/platform/erasing.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { publicBatchId, publicDeliveryId, publicEventId } from '../../../src/platform/public-ids.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';
import { API_ENCRYPTION_KEY, startTestApi, WABA } from '../api/api-harness.ts';
import { externalClient } from '../api/external-client.ts';
import { age, letBuffer, logged, release, write } from './buffer-fixtures.ts';

const ENDPOINTS = '/api/external/webhook-endpoints';

/** The API with an endpoint that buffers, its receiver, and a worker when it is asked for. */
async function buffering(options: Record<string, unknown> = {}) {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const api = await startTestApi();
  const { database } = api;
  const call = await externalClient(api);
  const { id } = await addEndpoint(database, WABA, `${receiver.url}/hook`);
  const settings = {
    orderScope: 'conversation',
    bufferSeconds: 1,
    retryScheduleSeconds: [1, 1, 1, 1],
    ...options,
  };
  const changed = await call('PATCH', `${ENDPOINTS}/${id}`, settings);
  expect(changed.statusCode).toBe(200);
  const work = async () => {
    const settings = testSettings(api.databaseUrl);
    const keys = `${settings.HELIOGRAPH_ENCRYPTION_KEYS},${API_ENCRYPTION_KEY}`;
    const worker = await startWorker(
      loadConfig({ ...settings, HELIOGRAPH_ENCRYPTION_KEYS: keys }),
      silentLogger,
    );
    onTestFinished(() => worker.stop());
  };
  /** Until so many requests were received and all deliveries of messages stand so. */
  const until = async (requests: number, state: string) => {
    await eventually('requests', () => receiver.received.length, { is: requests });
    await eventually(`all ${state}`, async () =>
      (await logged(database)).every((one) => one.state === state),
    );
  };
  return { api, database, call, receiver, endpointId: id, work, until };
}

test('a batch is refused, sent again and replayed with one id and the same bytes, and each message has its attempts', async () => {
  // A retry that only a request brings: none is made before the receiver accepts.
  const { database, call, receiver, work, until } = await buffering({
    retryScheduleSeconds: [86_400, 86_400],
  });
  receiver.behave(answer(503));
  await write(database, ...[1, 2, 3].map((n) => ({ id: `wamid.${n}` })));
  await work();
  await eventually(
    'an attempt of each is recorded',
    async () => (await logged(database)).map(({ log }) => log >= 1),
    {
      is: [true, true, true],
    },
  );
  expect(await logged(database)).toMatchObject(Array(3).fill({ state: 'pending', statusCode: 503 }));
  receiver.behave(answer(200));
  const [refused] = await logged(database);
  const retry = `/api/external/deliveries/${publicDeliveryId(refused?.id ?? '')}/retry`;
  expect((await call('POST', retry)).statusCode).toBe(200);
  await eventually('all delivered', async () =>
    (await logged(database)).every(({ state }) => state === 'delivered'),
  );
  const messages = await logged(database);
  const [first] = messages;
  const sent = receiver.received.length;
  expect(messages).toMatchObject(
    Array(3).fill({ sentWith: first?.id, attempts: sent, log: sent, statusCode: 200 }),
  );

  const details = await call('GET', `/api/external/events?type=message`);
  const ids: string[] = details.json().data.map((event: { id: string }) => event.id);
  expect(ids).toHaveLength(3);
  for (const id of ids) {
    const { deliveries } = (await call('GET', `/api/external/events/${id}`)).json();
    expect(deliveries).toMatchObject([{ batchId: publicBatchId(first?.id ?? ''), attemptCount: sent }]);
    expect(deliveries[0].attempts.at(-1).requestHeaders).toMatchObject({
      'webhook-id': publicEventId(first?.id ?? ''),
      'X-Service-Event-Type': 'message.batch',
      'X-Service-Delivery-Id': publicDeliveryId(first?.id ?? ''),
    });
  }

  const deliveryIds = messages.slice(1).map(({ id }) => publicDeliveryId(id));
  const replay = await call('POST', '/api/external/replays', { deliveryIds });
  expect(replay.statusCode).toBe(201);
  await until(sent + 1, 'delivered');
  const [batch] = receiver.received;
  for (const request of receiver.received) {
    expect(request.body).toBe(batch?.body);
    expect(request.headers['webhook-id']).toBe(publicEventId(first?.id ?? ''));
  }
  expect(receiver.received.at(-1)?.headers).toMatchObject({ 'x-service-replay': 'true' });
  expect(JSON.parse(batch?.body ?? '')).toMatchObject({
    eventType: 'message.batch',
    count: 3,
    events: messages.map(({ body }) => JSON.parse(body)),
  });
});

test('in the format meta a batch is one change with all messages, signed as Meta signs', async () => {
  const appSecret = 'the app secret of a bot';
  const { database, receiver, work, until } = await buffering({ format: 'meta', appSecret });
  await write(database, { id: 'wamid.1', text: 'é' }, { id: 'wamid.2' });
  await work();
  await until(1, 'delivered');
  const [request] = receiver.received;
  const body = request?.body ?? '';
  const signature = createHmac('sha256', appSecret).update(body).digest('hex');
  expect(request?.headers['x-hub-signature-256']).toBe(`sha256=${signature}`);
  const { entry } = JSON.parse(body);
  expect(entry).toHaveLength(1);
  expect(entry[0]).toMatchObject({ id: WABA, changes: [{ field: 'messages' }] });
  const { value } = entry[0].changes[0];
  expect(value.messages.map(({ id }: { id: string }) => id)).toEqual(['wamid.1', 'wamid.2']);
  expect(value.contacts).toHaveLength(1);
  expect(value.metadata.phone_number_id).toBe('800000000000111');
});

test('a batch whose worker is killed while it waits for the response is sent again whole, with the same bytes', async () => {
  const { database, url } = await seededDatabase();
  const receiver = await startReceiver(
    (_, response) => new Promise((resolve) => response.on('close', () => resolve(null))),
  );
  onTestFinished(() => receiver.close());
  const { id } = await addEndpoint(database, WABA, `${receiver.url}/hook`);
  await letBuffer(database, id, { seconds: 1 });
  await write(database, ...[1, 2, 3].map((n) => ({ id: `wamid.${n}` })));
  const settings = testSettings(url, { HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '2000' });
  const victim = startWorkerProcess(settings);
  onTestFinished(() => victim.kill());
  await eventually('sent', () => receiver.received.length > 0);
  await victim.kill();
  await write(database, { id: 'wamid.4' });
  receiver.behave(answer(200));
  const other = startWorkerProcess(settings);
  onTestFinished(() => other.stop());
  await eventually('delivered', async () => (await logged(database)).map(({ state }) => state), {
    is: Array(4).fill('delivered'),
  });
  // On a slow machine each may come more than once.
  const bodies = [...new Set(receiver.received.map(({ body }) => body))].map((body) => JSON.parse(body));
  expect(bodies).toMatchObject([
    { eventType: 'message.batch', count: 3 },
    { eventType: 'message', eventId: 'wamid.4' },
  ]);
  expect(receiver.received.length).toBeGreaterThan(2);
});

describe('a delivery of a batch that is not its first', () => {
  test('is retried and dropped with the batch', async () => {
    const { database, call, receiver, work } = await buffering({ retryScheduleSeconds: [86_400] });
    receiver.behave(answer(500));
    await write(database, { id: 'wamid.1' }, { id: 'wamid.2' });
    await work();
    await eventually('refused', async () => (await logged(database)).map(({ attempts }) => attempts), {
      is: [1, 1],
    });
    const [, second] = await logged(database);
    const delivery = `/api/external/deliveries/${publicDeliveryId(second?.id ?? '')}`;
    expect((await call('POST', `${delivery}/retry`)).statusCode).toBe(200);
    await eventually('failed', async () => (await logged(database)).map(({ state }) => state), {
      is: ['failed', 'failed'],
    });
    expect(receiver.received).toHaveLength(2);
    const failed = () => query(database, 'select sum(failed)::integer as n from endpoint_failures');
    await eventually('both are counted', failed, { is: [{ n: 2 }] });
  });

  test('is dropped with the batch', async () => {
    const { database, call } = await buffering();
    await write(database, { id: 'wamid.1' }, { id: 'wamid.2' });
    await age(database, 61);
    await release(database);
    const [, second] = await logged(database);
    const dropped = await call('POST', `/api/external/deliveries/${publicDeliveryId(second?.id ?? '')}/drop`);
    expect(dropped.statusCode).toBe(200);
    expect((await logged(database)).map(({ state }) => state)).toEqual(['dropped', 'dropped']);
    expect(await query(database, 'select 1 from delivery_queue')).toEqual([]);
  });
});

describe('erasing an event of a batch', () => {
  test('takes the batch out of the queue, and its bytes out of the log', async () => {
    const { database } = await buffering();
    await write(database, { id: 'wamid.1', text: 'something private' }, { id: 'wamid.2' });
    await age(database, 61);
    await release(database);
    const events = await query<{ day: string; id: string }>(
      database,
      `select day, id from events where event_id = 'wamid.2'`,
    );
    await quietEvents({ database, cancelWorkflows: async () => undefined }, events);
    expect(await query(database, 'select 1 from delivery_queue')).toEqual([]);
    await database.transaction((trx) => eraseEvents(trx, WABA, events));
    expect(await query(database, 'select event_type as type, event_id as "eventId" from events')).toEqual([
      { type: 'message', eventId: 'wamid.1' },
    ]);
  });

  test('waits for an attempt of the batch', async () => {
    const { database, receiver, work } = await buffering();
    receiver.behave((_, response) => new Promise((resolve) => response.on('close', () => resolve(null))));
    await write(database, { id: 'wamid.1' }, { id: 'wamid.2' });
    await work();
    await eventually('sent', () => receiver.received.length, { is: 1 });
    const events = await query<{ day: string; id: string }>(
      database,
      `select day, id from events where event_id = 'wamid.2'`,
    );
    await expect(quietEvents({ database, cancelWorkflows: async () => undefined }, events)).rejects.toThrow(
      NotYetErased,
    );
  });
});

describe('the settings', () => {
  test('need the order of the conversation, whichever of the two changes', async () => {
    const { call, endpointId } = await buffering();
    const path = `${ENDPOINTS}/${endpointId}`;
    const refused = { code: 'buffer_needs_conversation_order', param: 'bufferSeconds' };
    for (const orderScope of ['event', 'endpoint', null]) {
      const response = await call('PATCH', path, { orderScope });
      expect([response.statusCode, response.json().error]).toMatchObject([422, refused]);
    }
    const url = 'https://8.8.8.8/hook';
    const added = await call('POST', ENDPOINTS, { url, bufferSeconds: 5 });
    expect([added.statusCode, added.json().error]).toMatchObject([422, refused]);
    const both = await call('PATCH', path, { orderScope: 'event', bufferSeconds: 0 });
    expect([both.statusCode, both.json()]).toMatchObject([200, { orderScope: 'event', bufferSeconds: 0 }]);
    const all = {
      bufferSeconds: 60,
      bufferMaxSeconds: 300,
      bufferMaxMessages: 100,
      bufferTypes: ['text', 'image'],
    };
    const made = await call('POST', ENDPOINTS, { url, orderScope: 'conversation', ...all });
    expect([made.statusCode, made.json()]).toMatchObject([201, all]);
  });

  test('refuse a longest time that is shorter than the time', async () => {
    const { call, endpointId } = await buffering();
    const response = await call('PATCH', `${ENDPOINTS}/${endpointId}`, {
      bufferSeconds: 10,
      bufferMaxSeconds: 9,
    });
    expect([response.statusCode, response.json().error.param]).toEqual([400, 'bufferMaxSeconds']);
  });
});
