import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { claimHooks } from '../../../../src/ops/feed/hook-store.ts';
import { serveHook } from '../../../../src/ops/feed/serve-hook.ts';
import { leaseClockMs, leaseMsFor } from '../../../../src/platform/lease-clock.ts';
import { execute, queryValue } from '../../../../src/platform/postgres/sql.ts';
import { tablesHolding } from '../../../support/database-scan.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { addEndpoint, testSecretBox } from '../../../support/test-accounts.ts';
import { testSettings } from '../../../support/test-settings.ts';
import {
  answer,
  eventually,
  type ReceivedWebhook,
  startReceiver,
  type WebhookReceiver,
} from '../../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../../support/worker-process.ts';
import { apiOfFile, startTestApi, testConfig } from '../api-harness.ts';
import { LOOPBACK, retryHooksNow, startHooks } from './hook-fixtures.ts';
import { errorOf, fresh, type PlatformClient, platformClient, tenantOf } from './platform-client.ts';

const config = testConfig(LOOPBACK);
const api = apiOfFile(async () => ({ config }));

let ask: PlatformClient;
let receiver: WebhookReceiver;

beforeEach(async () => {
  await api.database.raw('delete from operations_hooks');
  ask = await platformClient(api);
  receiver = await startReceiver();
  onTestFinished(() => receiver.close());
});

const startSending = () => startHooks(api.database, config);

const hookOf = async (ref = 'crm') => (await ask('GET', `/operations-hooks/${ref}`)).body;

/** Adds a hook at the receiver; returns its secret. */
async function addHook(given: object = {}, ref = 'crm'): Promise<string> {
  const url = `${receiver.url}/${ref}?token=secret-token`;
  const { status, body } = await ask('PUT', `/operations-hooks/${ref}`, { url, ...given });
  expect(status).toBe(201);
  return body.secret;
}

const eventsAt = (path: string) =>
  receiver.received
    .filter((webhook) => webhook.path.startsWith(path) && webhook.status === 200)
    .map(({ body }) => JSON.parse(body));

const retryNow = () => retryHooksNow(api.database);

async function eventsOf(name: string) {
  return (await ask('GET', `/operation-events?tenant=${name}`)).body.data;
}

function verified({ headers, body }: ReceivedWebhook, secret: string): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}

test('a hook gets the events from its making on, as the feed has them, in its order, signed', async () => {
  await ask('PUT', `/tenants/${fresh().name}`, { businessName: 'Earlier Ltd' });
  const secret = await addHook();
  startSending();
  const { name, wabaId } = await tenantOf(ask);
  await ask('PUT', `/tenants/${name}/wabas/${wabaId}/keys/k`, { name: 'x', scopes: ['send'] });
  const inFeed = await eventsOf(name);
  expect(inFeed.length).toBeGreaterThan(3);
  await eventually('all have come', () => eventsAt('/crm'), { is: inFeed });
  for (const webhook of receiver.received) {
    expect(webhook.headers['webhook-id']).toBe(JSON.parse(webhook.body).id);
    expect(verified(webhook, secret)).toBe(true);
  }
  await eventually('its place is noted', async () => (await hookOf()).sequence >= inFeed.at(-1).sequence);
  expect(await hookOf()).toMatchObject({ state: 'enabled', failingSince: null, lastError: null });
});

test('the secret is in the first answer only, and neither it nor the URL is kept or shown in clear', async () => {
  const secret = await addHook({ description: 'the CRM' });
  expect(secret).toMatch(/^whsec_/);
  const again = await ask('PUT', '/operations-hooks/crm', { url: `${receiver.url}/crm?token=secret-token` });
  expect([again.status, again.body.secret, again.body.description]).toEqual([200, null, 'the CRM']);
  expect(await tablesHolding(api.database, [secret, secret.slice(6)])).toEqual([]);
  const shown = JSON.stringify([again.body, await hookOf(), (await ask('GET', '/operations-hooks')).body]);
  expect(shown).toContain(new URL(receiver.url).origin);
  expect(shown).not.toMatch(/secret-token|whsec_/);
  expect(JSON.stringify((await ask('GET', '/audit')).body)).not.toMatch(/secret-token|whsec_/);
});

test('twenty equal requests at the same time make one hook, and one answer has its secret', async () => {
  const put = () => ask('PUT', '/operations-hooks/crm', { url: `${receiver.url}/crm` });
  const answers = await Promise.all(Array.from({ length: 20 }, put));
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(19).fill(200), 201]);
  expect(answers.filter(({ body }) => body.secret !== null)).toHaveLength(1);
});

test('what is not accepted is sent again with its id, and nothing behind it comes first', async () => {
  await addHook({ types: ['tenant.*'] });
  let refusals = 2;
  receiver.behave((webhook, response) => {
    refusals -= 1;
    return answer(refusals < 0 ? 200 : 503)(webhook, response);
  });
  startSending();
  const { name } = await tenantOf(ask);
  await ask('PATCH', `/tenants/${name}`, { businessName: 'Bolt' });
  await eventually('it fails', async () => (await hookOf()).lastError, { is: 'the endpoint returned 503' });
  expect(await hookOf()).toMatchObject({
    failingSince: expect.any(String),
    nextAttemptAt: expect.any(String),
    lastErrorAt: expect.any(String),
  });
  const inFeed = (await eventsOf(name)).filter(({ type }: { type: string }) => type.startsWith('tenant.'));
  await eventually('all have come', async () => {
    await retryNow();
    return eventsAt('/crm').length === inFeed.length;
  });
  expect(eventsAt('/crm')).toEqual(inFeed);
  const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
  expect(ids.slice(0, 3)).toEqual(Array(3).fill(inFeed[0].id));
  await eventually('it is well again', async () => (await hookOf()).failingSince, { is: null });
});

test('a hook that hangs holds up no other', async () => {
  const slow = await startReceiver(() => new Promise(() => {}));
  onTestFinished(() => slow.close());
  await ask('PUT', '/operations-hooks/a-slow', { url: `${slow.url}/slow` });
  await addHook({ types: ['tenant.created'] });
  startSending();
  const { name } = await tenantOf(ask);
  await eventually('the other has it', () => eventsAt('/crm').length, { is: 1 });
  expect(eventsAt('/crm')[0].tenant.externalId).toBe(name);
});

test('a hook for which no time was left is let go at once, and one that another worker has by now is left alone', async () => {
  const { database } = api;
  await addHook();
  await tenantOf(ask);
  const timeoutMs = 3_600_000;
  const leaseMs = leaseMsFor(timeoutMs);
  const sender = { send: () => Promise.reject(new Error('there was time')), close: async () => {} };
  const stopping = new AbortController().signal;
  const tools = { database, sender, secretBox: testSecretBox, timeoutMs, logger: silentLogger, stopping };
  const late = leaseClockMs() - leaseMs;
  const [first] = await claimHooks(database, leaseMs);
  if (first === undefined) throw new Error('the hook is not due');
  await serveHook(tools, first, late);
  expect(await claimHooks(database, leaseMs)).toMatchObject([{ ref: 'crm' }]);
  await serveHook(tools, first, late);
  expect(await claimHooks(database, leaseMs)).toEqual([]);
});

test('a hook that fails for 3 days, or is gone, is disabled; enabled again it continues where it stopped', async () => {
  await addHook({ types: ['tenant.*'] });
  receiver.behave(answer(500));
  startSending();
  const first = await tenantOf(ask);
  await eventually('it fails', async () => (await hookOf()).lastError !== null);
  await execute(
    api.database,
    `update operations_hooks set failing_since = now() - interval '73 hours', due_at = now()`,
  );
  await eventually('it is disabled', async () => (await hookOf()).state, { is: 'disabled' });
  expect((await hookOf()).disabledReason).toBe('the endpoint returned 500');
  const noted = `select actor from audit_log where action = 'operations_hook.disabled'`;
  expect(await queryValue(api.database, noted)).toBe('system');
  const second = await tenantOf(ask);
  receiver.behave(answer(200));
  const again = await ask('PUT', '/operations-hooks/crm', { url: `${receiver.url}/crm`, state: 'enabled' });
  expect(again.body).toMatchObject({ state: 'enabled', disabledReason: null, types: ['tenant.*'] });
  const created = () =>
    eventsAt('/crm')
      .flatMap(({ type, tenant }) => (type === 'tenant.created' ? [tenant.externalId] : []))
      .sort();
  await eventually('both have come', created, { is: [first.name, second.name].sort() });
  receiver.behave(answer(410));
  await tenantOf(ask);
  await eventually('it is gone', async () => (await hookOf()).state, { is: 'disabled' });
});

test('a disabled hook gets nothing but a test event, which comes once and moves no place', async () => {
  const secret = await addHook({ state: 'disabled' });
  startSending();
  await tenantOf(ask);
  const before = await hookOf();
  expect((await ask('POST', '/operations-hooks/crm/test')).status).toBe(202);
  await eventually('the test has come', () => receiver.received.length, { is: 1 });
  const [webhook] = receiver.received;
  if (webhook === undefined) throw new Error('nothing came');
  expect(JSON.parse(webhook.body)).toMatchObject({ type: 'hook.test', sequence: 0, tenant: null, data: {} });
  expect(verified(webhook, secret)).toBe(true);
  await eventually('it is noted', async () => (await hookOf()).isTestPending, { is: false });
  expect(await hookOf()).toMatchObject({ sequence: before.sequence, lastSuccessAt: expect.any(String) });
  receiver.behave(answer(500));
  await ask('POST', '/operations-hooks/crm/test');
  await eventually('it failed', async () => (await hookOf()).lastError, { is: 'the endpoint returned 500' });
  expect((await hookOf()).failingSince).toBeNull();
  await sleep(1_500);
  expect(receiver.received).toHaveLength(2);
});

test('after a rotation both secrets sign, until the earlier one ends', async () => {
  const first = await addHook();
  const path = '/operations-hooks/crm/rotate-secret';
  const { body } = await ask('POST', path, { overlapHours: 24 });
  expect(body).toMatchObject({ hookRef: 'crm', previousSecretEndsAt: expect.any(String) });
  startSending();
  await ask('PUT', `/tenants/${fresh().name}`, { businessName: 'Acme' });
  const last = () => receiver.received.at(-1);
  const signedBy = (secret: string) => {
    const webhook = last();
    return webhook !== undefined && verified(webhook, secret);
  };
  await eventually('an event has come', () => last()?.status === 200);
  expect([signedBy(first), signedBy(body.secret)]).toEqual([true, true]);
  const { body: third } = await ask('POST', path, { overlapHours: 0 });
  const before = receiver.received.length;
  await ask('PUT', `/tenants/${fresh().name}`, { businessName: 'Acme' });
  await eventually('a further one has come', () => receiver.received.length > before);
  expect([signedBy(body.secret), signedBy(third.secret)]).toEqual([false, true]);
});

test('where the installation does not allow http, a hook has none', async () => {
  const strict = await startTestApi(async () => ({ config: testConfig() }));
  const put = async (url: string) =>
    errorOf(await (await platformClient(strict))('PUT', '/operations-hooks/crm', { url }));
  expect(await put('http://93.184.216.34/operations')).toEqual([422, 'invalid_url', 'url']);
  expect(await put('http://127.0.0.1/operations')).toEqual([422, 'invalid_url', 'url']);
  expect((await put('https://93.184.216.34/operations'))[0]).toBe(201);
});

test('refuses addresses inside, URLs of endpoints, types that there are not, and a sixth hook', async () => {
  const put = async (given: object, ref = 'crm') =>
    errorOf(await ask('PUT', `/operations-hooks/${ref}`, given));
  for (const url of [
    'https://10.0.0.1/x',
    'https://[::1]/x',
    'https://169.254.169.254/latest',
    'ftp://crm.example/',
  ])
    expect([url, (await put({ url }))[0]]).toEqual([url, 422]);
  const { wabaId } = await tenantOf(ask);
  await addEndpoint(api.database, wabaId, `${receiver.url}/tenant`);
  expect(await put({ url: `${receiver.url}/tenant/?x=1` })).toEqual([409, 'url_is_webhook_endpoint', null]);
  const url = `${receiver.url}/crm`;
  for (const types of [['gone'], ['t*'], ['*.created'], []])
    expect([types, ...(await put({ url, types }))]).toEqual([types, 400, 'invalid_parameter', 'types']);
  expect((await put({ url }, '.'))[0]).toBe(400);
  for (const ref of ['1', '2', '3', '4', '5']) await addHook({}, ref);
  expect(await put({ url }, '6')).toEqual([409, 'too_many_operations_hooks', null]);
  expect((await ask('PUT', '/operations-hooks/5', { url })).status).toBe(200);
  expect((await ask('DELETE', '/operations-hooks/5')).body).toEqual({ hookRef: '5' });
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/test'],
  ] as const)
    expect(errorOf(await ask(method, `/operations-hooks/5${path}`))[1]).toBe('unknown_operations_hook');
});

test('an address inside, to which a name leads by now, is not connected to', async () => {
  await addHook();
  await execute(api.database, `update operations_hooks set url = 'http://10.0.0.1/x'`);
  startSending();
  await tenantOf(ask);
  await eventually('it fails', async () => /blocked_address/.test((await hookOf()).lastError ?? ''));
});

test('a hook that has failed for 15 minutes opens an alert, of which the feed says nothing', async () => {
  const { followConditions } = await import('../../../../src/ops/alerts/alerts.ts');
  const { lookForConditions } = await import('../../../../src/ops/alerts/conditions.ts');
  await addHook({ state: 'disabled' });
  await execute(
    api.database,
    `update operations_hooks set disabled_reason = 'the endpoint returned 410 Gone'`,
  );
  await followConditions(api.database, await lookForConditions(api.database, new Date()));
  const alert = `select reason from alerts where kind = 'operations_hook_failing' and resolved_at is null`;
  expect(await queryValue(api.database, alert)).toBe('Hook crm is disabled: the endpoint returned 410 Gone');
  const { body } = await ask('GET', '/operation-events?types=alert.*');
  expect(JSON.stringify(body.data)).not.toContain('operations_hook_failing');
});

test('a worker that is killed between sends, without Temporal, loses no event; what comes again has the same id', async () => {
  const settings = testSettings(api.databaseUrl, {
    HELIOGRAPH_TEMPORAL_ADDRESS: '127.0.0.1:9',
    HELIOGRAPH_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    HELIOGRAPH_WEBHOOK_TIMEOUT_MS: '1000',
  });
  await addHook({ types: ['tenant.created'] });
  const names = Array.from({ length: 30 }, () => fresh().name);
  for (const name of names) await ask('PUT', `/tenants/${name}`, { businessName: 'Acme' });
  for (const most of [5, 12, 21]) {
    const worker = startWorkerProcess(settings);
    onTestFinished(() => worker.kill());
    // It dies while the answer to an event is under way.
    const reached = new Promise<void>((resolve) => {
      receiver.behave((webhook, response) => {
        if (eventsAt('/crm').length < most) return answer(200)(webhook, response);
        resolve();
        return new Promise((hang) => response.on('close', () => hang(null)));
      });
    });
    await reached;
    await worker.kill();
  }
  receiver.behave(answer(200));
  const last = startWorkerProcess(settings);
  onTestFinished(() => last.kill());
  const arrived = () => [...new Set(eventsAt('/crm').map(({ tenant }) => tenant.externalId))];
  await eventually('all have come, in order', arrived, { is: names });
  const byId = Map.groupBy(receiver.received, ({ headers }) => headers['webhook-id']);
  expect(byId.size).toBe(names.length);
  for (const sent of byId.values()) expect(new Set(sent.map(({ body }) => body)).size).toBe(1);
  expect(receiver.received.length).toBeGreaterThan(names.length);
});
