import { describe, expect, onTestFinished, test } from 'vitest';
import { publishEvents } from '../../../src/engine/deliveries/publish.ts';
import { startProbing } from '../../../src/engine/endpoint/endpoint-health.ts';
import { listAudit } from '../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { startWorker } from '../../../src/worker/start-worker.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { NUMBER, OTHER_WABA, startTestApi, WABA } from '../api/api-harness.ts';
import { externalClient } from '../api/external-client.ts';

const ENDPOINTS = '/api/external/webhook-endpoints';
const DELIVERIES = '/api/external/deliveries';
/** Nobody waits for the last one. */
const SCHEDULE = [1, 1, 1, 86_400];

/** The API with an endpoint, and events that are published without a worker. */
async function account() {
  const receiver = await startReceiver(answer(503));
  onTestFinished(() => receiver.close());
  const api = await startTestApi();
  const { database } = api;
  const call = await externalClient(api);
  const { id: endpointId } = await addEndpoint(database, WABA, `${receiver.url}/hook`);
  expect(
    (await call('PATCH', `${ENDPOINTS}/${endpointId}`, { retryScheduleSeconds: SCHEDULE })).statusCode,
  ).toBe(200);

  /** Events of one lane; returns the public ids of their deliveries, in order. */
  const publish = async (...eventIds: string[]): Promise<string[]> => {
    const [row] = await query<{ id: string }>(
      database,
      'select tenant_id as id from wabas where waba_id = :waba',
      { waba: WABA },
    );
    const events = eventIds.map((eventId) => ({
      wabaId: WABA,
      tenantId: row?.id ?? '',
      phoneNumberId: NUMBER,
      type: 'message' as const,
      eventId,
      laneKey: 'one-lane',
      conversationId: null,
      messageId: null,
      dataJson: '{}',
    }));
    await database.transaction((trx) => publishEvents(trx, events, new Date()));
    const rows = await query<{ id: string }>(
      database,
      `select 'dlv_' || replace(cast(d.id as text), '-', '') as id from deliveries d
         join events e on e.day = d.event_day and e.id = d.event_uuid
        where e.event_id = any (cast(:eventIds as text[])) order by e.sequence`,
      { eventIds },
    );
    return rows.map(({ id }) => id);
  };
  const work = async () => {
    const worker = await startWorker(loadConfig(testSettings(api.databaseUrl)), silentLogger);
    onTestFinished(() => worker.stop());
  };
  const waits = `select 1 from delivery_queue where state = 'retrying' and attempts = 4 and next_attempt_at > now() + interval '1 hour'`;
  /** Until the head has failed four times: its next attempt is a day away. */
  const failsFourTimes = () =>
    eventually('four failures', async () => (await query(database, waits)).length, { is: 1 });
  const audit = async (action: string) => await listAudit({ database }, { wabaId: WABA }, { action });
  return { api, database, call, receiver, endpointId, publish, work, failsFourTimes, audit };
}

/** A head that waits for its retry, as if it had failed. */
async function makeRetrying({ database }: Awaited<ReturnType<typeof account>>): Promise<void> {
  await execute(
    database,
    `update delivery_queue set state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 day'
      where state = 'due'`,
  );
  await execute(
    database,
    `update deliveries d set attempts = q.attempts, next_attempt_at = q.next_attempt_at
       from delivery_queue q where q.delivery_id = d.id`,
  );
}

const codeOf = (response: { statusCode: number; body: string; json(): { error?: { code: string } } }) => [
  response.statusCode,
  response.json().error?.code ?? response.body,
];

describe('retry now', () => {
  test('makes the attempt at once that was a day away, and the rest of its lane follows in order', async () => {
    const all = await account();
    const { call, receiver } = all;
    const [first = '', second = ''] = await all.publish('wamid.1', 'wamid.2', 'wamid.3');
    await all.work();
    await all.failsFourTimes();
    receiver.behave(answer(200));
    const refused = await call('POST', `${DELIVERIES}/${second}/retry`);
    expect(codeOf(refused)).toEqual([409, 'delivery_not_first']);
    expect(refused.json().error.message).toContain(first);
    const retried = await call('POST', `${DELIVERIES}/${first}/retry`);
    expect([retried.statusCode, retried.json()]).toEqual([
      200,
      { id: first, endpointId: all.endpointId, state: 'pending', retried: true },
    ]);
    await eventually(
      'all arrive',
      async () => (await query(all.database, 'select 1 from delivery_queue')).length === 0,
    );
    const succeeded = receiver.received.filter(({ status }) => status === 200);
    expect(succeeded.map(({ headers }) => headers['x-service-event-id'])).toEqual([
      'wamid.1',
      'wamid.2',
      'wamid.3',
    ]);
    expect(succeeded[0]?.headers['x-service-attempt']).toBe('5');
    expect(codeOf(await call('POST', `${DELIVERIES}/${first}/retry`))).toEqual([409, 'delivery_settled']);
    expect(await all.audit('delivery.retried')).toMatchObject([{ target: `delivery ${first}` }]);
  });

  test('of an endpoint sends all that waits for a retry', async () => {
    const all = await account();
    await all.publish('wamid.1', 'wamid.2', 'wamid.3');
    await all.work();
    await all.failsFourTimes();
    all.receiver.behave(answer(200));
    const retried = await all.call('POST', `${ENDPOINTS}/${all.endpointId}/retry`);
    expect([retried.statusCode, retried.json()]).toEqual([
      200,
      { id: all.endpointId, retried: 1, probed: false, more: false },
    ]);
    await eventually(
      'all arrive',
      async () => (await query(all.database, 'select 1 from delivery_queue')).length === 0,
    );
    const succeeded = all.receiver.received.filter(({ status }) => status === 200);
    expect(succeeded.map(({ headers }) => headers['x-service-event-id'])).toEqual([
      'wamid.1',
      'wamid.2',
      'wamid.3',
    ]);
  });

  test('of an endpoint whose breaker is open probes at once', async () => {
    const all = await account();
    await all.publish('wamid.1', 'wamid.2');
    all.receiver.behave(answer(200));
    await all.database.transaction((trx) =>
      startProbing(trx, all.endpointId, { probeAfterMs: 86_400_000, reason: 'test' }),
    );
    await all.work();
    const retried = await all.call('POST', `${ENDPOINTS}/${all.endpointId}/retry`);
    expect([retried.statusCode, retried.json()]).toEqual([
      200,
      { id: all.endpointId, retried: 0, probed: true, more: false },
    ]);
    await eventually(
      'all arrive',
      async () => (await query(all.database, 'select 1 from delivery_queue')).length === 0,
    );
    expect(await all.audit('endpoint.retried')).toMatchObject([{ target: `endpoint ${all.endpointId}` }]);
  });

  test('changes nothing the second time, and writes down what it changed', async () => {
    const all = await account();
    const [first = ''] = await all.publish('wamid.1', 'wamid.2');
    await makeRetrying(all);
    const retry = async () => (await all.call('POST', `${DELIVERIES}/${first}/retry`)).json();
    expect([await retry(), await retry()]).toMatchObject([{ retried: true }, { retried: false }]);
    expect(
      await query(all.database, 'select state, next_attempt_at from delivery_queue order by position'),
    ).toEqual([
      { state: 'due', next_attempt_at: null },
      { state: 'queued', next_attempt_at: null },
    ]);
    expect(await all.audit('delivery.retried')).toHaveLength(1);
    await makeRetrying(all);
    const retryAll = async () => (await all.call('POST', `${ENDPOINTS}/${all.endpointId}/retry`)).json();
    expect([await retryAll(), await retryAll()]).toMatchObject([{ retried: 1 }, { retried: 0 }]);
    expect(await all.audit('endpoint.retried')).toMatchObject([{ detail: { retried: 1, probed: false } }]);
    const [event] = (await all.call('GET', '/api/external/events')).json().data;
    const { deliveries } = (await all.call('GET', `/api/external/events/${event.id}`)).json();
    // The log says so too: no list shows the attempt that was a day away.
    expect(
      deliveries[0].nextAttemptAt === null || Date.parse(deliveries[0].nextAttemptAt) < Date.now() + 60_000,
    ).toBe(true);
  });

  test('leaves a probe that is under way the only one', async () => {
    const all = await account();
    const { database, endpointId } = all;
    await all.publish('wamid.1');
    await database.transaction((trx) =>
      startProbing(trx, endpointId, { probeAfterMs: 86_400_000, reason: 'test' }),
    );
    await execute(
      database,
      `update delivery_queue set state = 'claimed', token = gen_random_uuid(), lease_until = now() + interval '1 minute'`,
    );
    expect((await all.call('POST', `${ENDPOINTS}/${endpointId}/retry`)).json()).toMatchObject({
      probed: false,
    });
    const [probe] = await query<{ isLater: boolean }>(
      database,
      'select next_probe_at > now() as "isLater" from endpoint_health where endpoint_id = :endpointId',
      { endpointId },
    );
    expect(probe).toEqual({ isLater: true });
  });
});

describe('what cannot be retried', () => {
  test('is refused with the reason', async () => {
    const all = await account();
    const { call, database, endpointId } = all;
    const [id = ''] = await all.publish('wamid.1');
    const retry = async () => codeOf(await call('POST', `${DELIVERIES}/${id}/retry`));
    const retryAll = async () => codeOf(await call('POST', `${ENDPOINTS}/${endpointId}/retry`));
    const queued = (change: string) => execute(database, `update delivery_queue set ${change}`);

    await queued(`state = 'claimed', token = gen_random_uuid(), lease_until = now() + interval '1 minute'`);
    expect(await retry()).toEqual([409, 'attempt_under_way']);
    expect(codeOf(await call('POST', `${DELIVERIES}/${id}/drop`))).toEqual([409, 'attempt_under_way']);
    await queued(`state = 'unreleased', token = null, lease_until = null, released = false`);
    expect(await retry()).toEqual([409, 'delivery_held']);
    await queued(`state = 'suspended', replay = true`);
    expect(await retry()).toEqual([409, 'delivery_held']);
    await queued(
      `state = 'retrying', released = true, replay = false, attempts = 1, next_attempt_at = now() + interval '1 day'`,
    );
    for (const mode of ['pause', 'disable']) {
      await execute(database, 'update endpoint_health set mode = :mode where endpoint_id = :endpointId', {
        mode: `${mode}d`,
        endpointId,
      });
      expect([await retry(), await retryAll()]).toEqual([
        [409, 'endpoint_not_enabled'],
        [409, 'endpoint_not_enabled'],
      ]);
    }
    await execute(database, `delete from delivery_queue`);
    for (const state of ['delivered', 'failed', 'dropped']) {
      await execute(database, 'update deliveries set state = :state, finished_at = now()', { state });
      expect(await retry()).toEqual([409, 'delivery_settled']);
    }
    expect(await listAudit({ database }, { wabaId: WABA }, { action: 'delivery.retried' })).toEqual([]);
  });

  test('is unknown to others', async () => {
    const all = await account();
    const [id = ''] = await all.publish('wamid.1');
    await makeRetrying(all);
    const other = await externalClient(all.api, OTHER_WABA);
    for (const path of [
      ...[`${DELIVERIES}/${id}/retry`, `${DELIVERIES}/${id}/drop`, `${ENDPOINTS}/${all.endpointId}/retry`],
      ...[`${DELIVERIES}/${id.slice(0, -1)}/retry`, `${DELIVERIES}/1/drop`],
    ]) {
      expect([path, ...codeOf(await other('POST', path))]).toEqual([path, 404, 'not_found']);
    }
    expect(await query(all.database, 'select state from delivery_queue')).toEqual([{ state: 'retrying' }]);
  });

  test('needs a key that may manage webhooks', async () => {
    const all = await account();
    const [id = ''] = await all.publish('wamid.1');
    await execute(all.database, `update api_keys set scopes = '{read}'`);
    for (const path of [
      `${DELIVERIES}/${id}/retry`,
      `${DELIVERIES}/${id}/drop`,
      `${ENDPOINTS}/${all.endpointId}/retry`,
    ]) {
      expect(codeOf(await all.call('POST', path))).toEqual([403, 'insufficient_scope']);
    }
  });
});

test('drop lets the next of the lane go, and is the same when asked again', async () => {
  const all = await account();
  const [first = '', second = ''] = await all.publish('wamid.1', 'wamid.2');
  await makeRetrying(all);
  const drop = async () => {
    const response = await all.call('POST', `${DELIVERIES}/${first}/drop`);
    return [response.statusCode, response.json()];
  };
  const dropped = [200, { id: first, endpointId: all.endpointId, state: 'dropped' }];
  expect([await drop(), await drop()]).toEqual([dropped, dropped]);
  expect(
    await query(
      all.database,
      `select 'dlv_' || replace(cast(delivery_id as text), '-', '') as id, state from delivery_queue`,
    ),
  ).toEqual([{ id: second, state: 'due' }]);
  expect(await all.audit('delivery.dropped')).toHaveLength(1);
  await execute(all.database, `update deliveries set state = 'delivered'`);
  expect(codeOf(await all.call('POST', `${DELIVERIES}/${first}/drop`))).toEqual([409, 'delivery_settled']);
});
