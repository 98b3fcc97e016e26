import { afterEach, beforeEach, expect, test } from 'vitest';
import { lookForConditions } from '../../../src/ops/alerts/conditions.ts';
import { doctorChecks } from '../../../src/ops/health/doctor.ts';
import { parseEgressProxy } from '../../../src/platform/http/egress-proxy-url.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { reportWorker } from '../../../src/platform/postgres/worker-processes.ts';
import { makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { makeProxyRoute } from '../../../src/platform/sender/proxy-route.ts';
import { startConnectProxy } from '../../support/connect-proxy.ts';
import { attemptHead, idleLoop } from '../../support/idle-loop.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { startReceiver, type WebhookReceiver } from '../../support/webhook-receiver.ts';

const WABA = '900000000000101';

let receiver: WebhookReceiver;
let proxy: Awaited<ReturnType<typeof startConnectProxy>>;

beforeEach(async () => {
  receiver = await startReceiver();
  proxy = await startConnectProxy();
});
afterEach(async () => {
  await proxy.stop();
  await receiver.close();
});

/** A delivery that waits for the receiver, and a loop that reaches it through the proxy only. */
async function oneDelivery() {
  const { database } = await seededWorkerDatabase();
  await addEndpoint(database, WABA, `${receiver.url}/hook`);
  await takeIn(database, fixtureBody('st_sent_v24'));
  const settings = parseEgressProxy(`http://127.0.0.1:${proxy.port}`);
  if (settings === null) throw new Error('no proxy');
  const guard = makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] });
  const route = makeProxyRoute(settings);
  const limits = { connectTimeoutMs: 500, totalTimeoutMs: 1_000 };
  const sender = makeHttpSender({ guard, allowHttp: true, route, ...limits });
  const defaults = { retryScheduleMs: [60_000], timeoutMs: 1_000, workflows: 'auto' as const };
  return { database, sender, route, ...idleLoop({ database, sender, defaults }) };
}

async function endpointState(database: Database) {
  const [endpoint] = await query(
    database,
    `select mode, failing_since as "failingSince", has_backlog as "hasBacklog", probe_failures as "probeFailures"
       from endpoint_health`,
  );
  return endpoint;
}

test('a proxy that is down uses up no attempt of the schedule and blames no endpoint; then the delivery goes out', async () => {
  const { database, loop, sender, tools } = await oneDelivery();
  await proxy.stop();
  // More than the schedule allows and than the breaker tolerates.
  for (let attempt = 0; attempt < 32; attempt += 1) {
    const outcome = await attemptHead(database, loop);
    expect(outcome).toMatchObject({
      state: 'retrying',
      isExtra: true,
      reason: expect.stringMatching(/^proxy: /),
    });
    await execute(database, `update delivery_queue set state = 'due', next_attempt_at = null`);
  }
  expect(tools.health.drain()).toEqual([]);
  expect(await endpointState(database)).toEqual({
    mode: 'open',
    failingSince: null,
    hasBacklog: false,
    probeFailures: 0,
  });
  proxy = await startConnectProxy({ port: proxy.port });
  expect(await attemptHead(database, loop)).toMatchObject({ state: 'delivered' });
  expect(receiver.received).toHaveLength(1);
  await sender.close();
});

test('a probe that the proxy spoils does not make the next one later', async () => {
  const { database, loop, sender } = await oneDelivery();
  await proxy.stop();
  await execute(
    database,
    `update endpoint_health set mode = 'probing', probe_failures = 2, next_probe_at = now() - interval '1 second'`,
  );
  await loop.probe();
  expect(await endpointState(database)).toMatchObject({ mode: 'probing', probeFailures: 2 });
  await sender.close();
});

test('operators get an alert while a worker cannot use the proxy, and the doctor fails', async () => {
  const { database, sender } = await oneDelivery();
  const found = async () =>
    (await lookForConditions(database, new Date())).flatMap((looked) =>
      'conditions' in looked ? looked.conditions.filter(({ kind }) => kind === 'egress_proxy_down') : [],
    );
  const workers = doctorChecks({ database } as never).find(({ name }) => name === 'workers');
  await reportWorker(database, 'host:1', undefined, null);
  expect(await found()).toEqual([]);
  expect(await workers?.run()).toMatchObject([{ status: 'up', detail: '1: host:1' }]);
  await reportWorker(
    database,
    'host:1',
    undefined,
    'The egress proxy does not work: it refuses connections.',
  );
  expect(await found()).toMatchObject([
    { tenantId: null, reason: expect.stringMatching(/refuses connections/) },
  ]);
  expect(await workers?.run()).toMatchObject([
    { status: 'down', detail: expect.stringMatching(/refuses connections/) },
  ]);
  await reportWorker(database, 'host:1', undefined, null);
  expect(await found()).toEqual([]);
  await sender.close();
});
