import { expect, onTestFinished, test } from 'vitest';
import { loadEndpointSettings } from '../../../src/engine/endpoint/endpoint-settings.ts';
import { addEndpoint, updateEndpoint } from '../../../src/features/endpoints/endpoints.ts';
import { limitWebhookTargets, webhookTargets } from '../../../src/features/endpoints/webhook-targets.ts';
import { setOperationsUrl } from '../../../src/ops/alerts/operations-url.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { makeHttpSender } from '../../../src/platform/sender/http-sender.ts';
import { startAdmin } from '../../support/admin-cli.ts';
import { testSecretBox } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { startReceiver } from '../../support/webhook-receiver.ts';
import { addKey, startTestApi, testConfig } from '../api/api-harness.ts';
import { attemptAt } from './attempt-at.ts';

const WABA = '900000000000101';
const OTHER_WABA = '900000000000202';
const RULES = { allowHttp: true, guard: makeAddressGuard({ allowCidrs: ['127.0.0.0/8'] }) };

async function startTwoTenants() {
  const { database } = await seededDatabase();
  const receiver = await startReceiver();
  const sender = makeHttpSender({
    ...RULES,
    connectTimeoutMs: 5_000,
    totalTimeoutMs: 5_000,
    resolve: async () => ['127.0.0.1'],
  });
  onTestFinished(async () => {
    await sender.close();
    await receiver.close();
  });
  const urlRules = { ...RULES, resolve: async () => ['127.0.0.1'] };
  const tools = { database, secretBox: testSecretBox, urlRules, maxTimeoutMs: 15_000, actor: SYSTEM };
  const url = `http://inner.example:${new URL(receiver.url).port}/hook`;
  const send = async (id: string) => await attemptAt({ database, sender }, id);
  const [own, other] = [
    (await addEndpoint(tools, WABA, { url })).id,
    (await addEndpoint(tools, OTHER_WABA, { url })).id,
  ];
  return { database, tools, url, send, own, other, port: new URL(receiver.url).port };
}

test('what a WABA is denied is refused at the next attempt, over open connections of others too', async () => {
  const { database, tools, send, own, other } = await startTwoTenants();
  expect([await send(other), await send(own)]).toEqual([200, 200]);
  const [before] = await loadEndpointSettings(database, [own]);
  await limitWebhookTargets(tools, WABA, { deny: ['127.0.0.0/8'] });
  const [after] = await loadEndpointSettings(database, [own]);
  expect(after?.version).toBeGreaterThan(before?.version ?? 0);
  expect([await send(own), await send(other)]).toEqual(['dns', 200]);
  await limitWebhookTargets(tools, WABA, { deny: ['inner.example'] });
  expect([await send(own), await send(other)]).toEqual(['blocked_address', 200]);
  await limitWebhookTargets(tools, WABA, { deny: [] });
  expect(await send(own)).toBe(200);
});

test('with an allow list only what it names is left, by host and port; what is denied wins', async () => {
  const { tools, send, own, other, port } = await startTwoTenants();
  await limitWebhookTargets(tools, WABA, { allow: ['shop.example', `127.0.0.1:${port}`] });
  expect(await send(own)).toBe(200);
  await limitWebhookTargets(tools, WABA, { allow: ['127.0.0.1:1'] });
  expect([await send(own), await send(other)]).toEqual(['blocked_address', 200]);
  await limitWebhookTargets(tools, WABA, { allow: [`*.example:${port}`], deny: ['127.0.0.1'] });
  expect(await send(own)).toBe('dns');
});

test('an allow list opens nothing that the installation refuses', async () => {
  const { tools } = await startTwoTenants();
  await limitWebhookTargets(tools, WABA, { allow: ['10.1.2.3', '169.254.169.254'] });
  for (const url of ['http://10.1.2.3/', 'http://169.254.169.254/']) {
    await expect(addEndpoint(tools, WABA, { url })).rejects.toMatchObject({ code: 'address_not_allowed' });
  }
});

test('URLs are judged by the lists when they are saved, those of alerts too', async () => {
  const { tools, own, url } = await startTwoTenants();
  await limitWebhookTargets(tools, WABA, { deny: ['*.example'] });
  const refused = { code: 'address_not_allowed' };
  await expect(addEndpoint(tools, WABA, { url })).rejects.toMatchObject(refused);
  await expect(updateEndpoint(tools, WABA, own, { url: `${url}/2` })).rejects.toMatchObject(refused);
  await expect(setOperationsUrl(tools, WABA, 'http://ops.example/')).rejects.toMatchObject(refused);
  await addEndpoint(tools, OTHER_WABA, { url: `${url}/2` });
  for (const wrong of [
    { deny: ['a b'] },
    { allow: Array.from({ length: 101 }, (_, n) => `h${n}.example`) },
  ]) {
    await expect(limitWebhookTargets(tools, WABA, wrong)).rejects.toMatchObject({ code: 'invalid_value' });
  }
});

test('the command shows and sets the lists', async () => {
  const { database, json } = await startAdmin();
  const set = await json('endpoint', 'targets', '--waba', WABA, '--allow', 'Shop.example, 10.1.0.0/16:8443');
  expect(set).toEqual({ wabaId: WABA, allow: ['shop.example', '10.1.0.0/16:8443'], deny: [] });
  expect(await webhookTargets(database, WABA)).toEqual({ allow: set.allow, deny: [] });
  expect(await json('endpoint', 'targets', '--waba', WABA)).toEqual(set);
});

test('what HELIOGRAPH_WEBHOOK_DENY names is saved for no endpoint, and no attempt reaches it', async () => {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const config = testConfig({ HELIOGRAPH_WEBHOOK_DENY: '127.0.0.1,8.8.8.0/24,*.inner.example' });
  const api = await startTestApi(async () => ({ config }));
  const { authorization } = await addKey(api.database, WABA);
  const add = async (url: string) => {
    const request = { method: 'POST' as const, url: '/api/external/webhook-endpoints', payload: { url } };
    const answer = await api.app.inject({ ...request, headers: { authorization } });
    return [answer.statusCode, answer.json().error?.message];
  };
  expect(await add('https://8.8.4.4/hook')).toEqual([201, undefined]);
  for (const url of ['https://8.8.8.8/hook', 'https://a.inner.example/hook'])
    expect(await add(url)).toEqual([422, expect.stringContaining('webhooks are not sent to')]);
  const { url } = receiver;
  for (const [deny, outcome] of [
    [[], 'response'],
    [config.webhooks.deny, 'error'],
  ] as const) {
    const guard = makeAddressGuard({ allowCidrs: ['127.0.0.0/8'], deny });
    const sender = makeHttpSender({ allowHttp: true, guard, connectTimeoutMs: 5_000, totalTimeoutMs: 5_000 });
    onTestFinished(() => sender.close());
    const request = { url, headers: {}, body: Buffer.from('{}'), timeoutMs: 5_000 };
    expect((await sender.send(request as never)).outcome).toBe(outcome);
  }
});
