import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../../src/platform/config/config.ts';
import { queryColumn } from '../../../../src/platform/postgres/sql.ts';
import { startWorker } from '../../../../src/worker/start-worker.ts';
import { bodyOf, textMessage } from '../../../support/load/upstream-bodies.ts';
import { accountOf } from '../../../support/receiving-tenant.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { addEndpoint, freshTenant } from '../../../support/test-accounts.ts';
import { testSettings } from '../../../support/test-settings.ts';
import { eventually, startReceiver } from '../../../support/webhook-receiver.ts';
import { addUser } from '../../portal/portal-browser.ts';
import { addKey, apiOfFile, freshKeyHolder, signed } from '../api-harness.ts';
import { fresh, platformClient } from './platform-client.ts';

const api = apiOfFile();

/** A tenant that a program has named. */
async function named(tenantId: string) {
  const ask = await platformClient(api);
  const { name } = fresh();
  await ask('PUT', `/tenants/${name}`, { businessName: 'Fixture Store', userId: Number(tenantId) });
  const to = (state: 'active' | 'suspended') => ask('PATCH', `/tenants/${name}`, { state });
  return { ask, name, to };
}

const TEXT = { to: '+12025550143', type: 'text', text: { body: 'x' } };

test('a suspended tenant sends nothing, by neither API, and reads and manages its webhooks as before', async () => {
  const tenant = await freshKeyHolder(api.database);
  const { to } = await named(tenant.tenantId);
  const { authorization } = tenant;
  const graph = await addKey(api.database, tenant.wabaId);
  await api.database.raw(`update api_keys set scopes = '{graph,graph_manage}' where id = :id`, {
    id: graph.id,
  });
  const send = async () => {
    const payload = { ...TEXT, phoneNumberId: tenant.number };
    const url = '/api/external/messages';
    const { statusCode, body } = await api.app.inject({
      method: 'POST',
      url,
      headers: { authorization },
      payload,
    });
    return [statusCode, body.includes('tenant_suspended')];
  };
  const sendByFacade = async () => {
    const payload = { messaging_product: 'whatsapp', ...TEXT };
    const url = `/graph/v26.0/${tenant.number}/messages`;
    const headers = { authorization: graph.authorization };
    return (await api.app.inject({ method: 'POST', url, headers, payload })).statusCode;
  };
  const reads = async () => {
    const urls = ['/me', '/api/external/conversations', '/api/external/webhook-endpoints'];
    const answers = await Promise.all(urls.map((url) => api.app.inject({ url, headers: { authorization } })));
    return answers.map(({ statusCode }) => statusCode);
  };
  await to('suspended');
  expect([await send(), await sendByFacade()]).toEqual([[403, true], 403]);
  expect(await reads()).toEqual([200, 200, 200]);
  const sent =
    'select 1 from outbound_messages m join phone_numbers n using (phone_number_id) where n.waba_id = :wabaId';
  expect(await queryColumn(api.database, sent, { wabaId: tenant.wabaId })).toEqual([]);
  await to('active');
  expect(await send()).toEqual([202, false]);
});

test('a revoked key leaves what it has scheduled, or cancels that and nothing of other keys', async () => {
  const tenant = await freshKeyHolder(api.database);
  const { ask, name } = await named(tenant.tenantId);
  const keys = `/tenants/${name}/wabas/${tenant.wabaId}/keys`;
  const schedule = async (authorization: string) => {
    const sendAt = new Date(Date.now() + 3_600_000).toISOString();
    const payload = { ...TEXT, phoneNumberId: tenant.number, sendAt };
    const headers = { authorization };
    const answer = await api.app.inject({ method: 'POST', url: '/api/external/messages', headers, payload });
    expect(answer.json().state).toBe('scheduled');
    return String(answer.json().serviceMessageId);
  };
  const keyOf = async (ref: string) => {
    const { body } = await ask('PUT', `${keys}/${ref}`, { name: ref, scopes: ['send'] });
    return `Bearer ${body.apiKey}`;
  };
  const stateOf = async (id: string) => {
    const headers = { authorization: tenant.authorization };
    return (await api.app.inject({ url: `/api/external/messages/${id}`, headers })).json().state;
  };
  const [kept, own] = [await schedule(await keyOf('a')), await schedule(tenant.authorization)];
  expect((await ask('DELETE', `${keys}/a`)).body).toMatchObject({ cancelledMessages: 0 });
  const shop = await keyOf('b');
  const [first, second] = [await schedule(shop), await schedule(shop)];
  expect((await ask('DELETE', `${keys}/b?cancelScheduled=true`)).body).toMatchObject({
    cancelledMessages: 2,
  });
  expect(await Promise.all([kept, own, first, second].map(stateOf))).toEqual([
    ...['scheduled', 'scheduled'],
    ...['cancelled', 'cancelled'],
  ]);
});

test('a suspended tenant gets no keys, and changes nothing in the portal but what is its users’ own', async () => {
  const tenant = await freshTenant(api.database);
  const { ask, name, to } = await named(tenant.tenantId);
  const admin = await addUser(api, {
    email: `${name}@store.example`,
    role: 'admin',
    tenantId: tenant.tenantId,
  });
  const path = `/portal/w/${tenant.wabaId}`;
  const keys = `/tenants/${name}/wabas/${tenant.wabaId}/keys/shop`;
  const key = { name: 'x', scopes: ['send'] };
  await to('suspended');
  expect(await ask('PUT', keys, key)).toMatchObject({
    status: 403,
    body: { error: { code: 'tenant_suspended' } },
  });
  const session = { user: { externalId: 'u_17', email: `${name}@crm.example` }, role: 'admin' };
  expect(await ask('POST', `/tenants/${name}/portal-sessions`, session)).toMatchObject({
    status: 403,
    body: { error: { code: 'tenant_suspended' } },
  });
  const endpoint = { url: 'https://93.184.216.34/hook' };
  const refused = await admin.post(`${path}/endpoints`, endpoint);
  expect([refused.statusCode, refused.body.includes('Suspended')]).toEqual([403, true]);
  expect((await admin.get(`${path}/endpoints`)).statusCode).toBe(200);
  expect((await admin.post('/portal/sign-out')).statusCode).toBe(303);
  const urls = 'select url from webhook_endpoints where waba_id = :wabaId';
  expect(await queryColumn(api.database, urls, { wabaId: tenant.wabaId })).toEqual([]);
  await to('active');
  expect((await ask('PUT', keys, key)).status).toBe(201);
});

test('a suspended tenant loses nothing: its messages are taken from upstream and delivered', async () => {
  const tenant = await freshTenant(api.database);
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  await addEndpoint(api.database, tenant.wabaId, `${receiver.url}/hook`);
  const { to } = await named(tenant.tenantId);
  await to('suspended');
  const worker = await startWorker(loadConfig(testSettings(api.databaseUrl)), silentLogger);
  onTestFinished(() => worker.stop());
  const body = bodyOf(accountOf(tenant), [textMessage('wamid.SUSPENDED', 'hello')]);
  const taken = await api.app.inject({
    method: 'POST',
    url: '/upstream/webhook',
    headers: { 'content-type': 'application/json', ...signed(body) },
    payload: body,
  });
  expect(taken.statusCode).toBe(200);
  await eventually('delivered', () =>
    receiver.received.some(({ body: sent }) => String(sent).includes('wamid.SUSPENDED')),
  );
});
