import { expect, test } from 'vitest';
import { query, queryColumn } from '../../../../src/platform/postgres/sql.ts';
import { tablesHolding } from '../../../support/database-scan.ts';
import { apiOfFile } from '../api-harness.ts';
import { addPlatformKey, clientWith, errorOf, fresh, platformClient, tenantOf } from './platform-client.ts';

const api = apiOfFile();

const KEY = { name: 'shop server', scopes: ['send', 'manage_webhooks'] };

test('a program makes a tenant, its WABA and a key that works, under its own ids, and finds them again', async () => {
  const ask = await platformClient(api);
  const { name, wabaId, number } = fresh();
  const tenant = await ask('PUT', `/tenants/${name}`, {
    businessName: 'Acme Ltd',
    metadata: { plan: 'gold' },
  });
  expect(tenant).toMatchObject({
    status: 201,
    body: {
      externalId: name,
      businessName: 'Acme Ltd',
      state: 'active',
      metadata: { plan: 'gold' },
      wabas: [],
    },
  });
  expect(tenant.body.userId).toEqual(expect.any(Number));
  const waba = {
    phoneNumbers: [{ phoneNumberId: number, displayPhoneNumber: '12025550100' }],
    accessToken: 'EAAG-secret',
  };
  const added = await ask('PUT', `/tenants/${name}/wabas/${wabaId}`, waba);
  expect(added).toMatchObject({ status: 201, body: { wabaId, hasAccessToken: true } });
  expect(JSON.stringify(added.body)).not.toContain('EAAG');
  const key = await ask('PUT', `/tenants/${name}/wabas/${wabaId}/keys/shop`, KEY);
  expect(key).toMatchObject({ status: 201, body: { keyRef: 'shop', ...KEY, state: 'active' } });
  const me = await api.app.inject({
    url: '/api/external/key',
    headers: { authorization: `Bearer ${key.body.apiKey}` },
  });
  expect(me.json()).toMatchObject({ id: key.body.id, wabaId });
  const found = await ask('GET', `/tenants/${name}`);
  expect(found).toMatchObject({
    status: 200,
    body: {
      userId: tenant.body.userId,
      wabas: [{ wabaId, hasAccessToken: true, phoneNumbers: [{ phoneNumberId: number }] }],
      usage: { storedBytes: 0, storedFiles: 0 },
    },
  });
  expect(found.body.quotas.uploadFilesPerDay).toBe(10_000);
});

test('a repetition makes nothing and shows no secret: the answer to it is 200', async () => {
  const ask = await platformClient(api);
  const { name, wabaId } = await tenantOf(ask);
  const path = `/tenants/${name}/wabas/${wabaId}/keys/shop`;
  expect((await ask('PUT', path, KEY)).status).toBe(201);
  for (let turn = 0; turn < 2; turn += 1) {
    expect((await ask('PUT', `/tenants/${name}`, { businessName: 'Acme Ltd' })).status).toBe(200);
    expect((await ask('PUT', `/tenants/${name}/wabas/${wabaId}`, {})).status).toBe(200);
    // As a program does that was killed before it read the answer, and reckons the expiry once more.
    const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
    expect(await ask('PUT', path, { ...KEY, expiresAt })).toMatchObject({
      status: 200,
      body: { apiKey: null, expiresAt: null },
    });
  }
  expect(
    await queryColumn(api.database, 'select id from api_keys where waba_id = :wabaId', { wabaId }),
  ).toHaveLength(1);
});

test('20 equal requests at once make one tenant, one WABA and one key, and one answer has the key', async () => {
  const ask = await platformClient(api);
  const { name, wabaId } = fresh();
  const atOnce = (path: string, body: object) =>
    Promise.all(Array.from({ length: 20 }, () => ask('PUT', path, body)));
  const made = (answers: readonly { status: number }[]) => answers.map(({ status }) => status).sort();
  const once = [...Array.from({ length: 19 }, () => 200), 201];
  const tenants = await atOnce(`/tenants/${name}`, { businessName: 'Acme Ltd' });
  expect(made(tenants)).toEqual(once);
  expect(new Set(tenants.map(({ body }) => body.userId)).size).toBe(1);
  expect(made(await atOnce(`/tenants/${name}/wabas/${wabaId}`, {}))).toEqual(once);
  const keys = await atOnce(`/tenants/${name}/wabas/${wabaId}/keys/shop`, KEY);
  expect(made(keys)).toEqual(once);
  expect(keys.filter(({ body }) => body.apiKey !== null)).toHaveLength(1);
  expect(await query(api.database, 'select from api_keys where waba_id = :wabaId', { wabaId })).toHaveLength(
    1,
  );
});

test('no key, token or platform key is in any table', async () => {
  const { platformKey, authorization } = await addPlatformKey(api.database);
  const ask = clientWith(api, authorization);
  const { name, wabaId } = await tenantOf(ask);
  await ask('PUT', `/tenants/${name}/wabas/${wabaId}`, { accessToken: 'EAAG-very-secret-token' });
  const path = `/tenants/${name}/wabas/${wabaId}/keys/shop`;
  const { apiKey } = (await ask('PUT', path, KEY)).body;
  const rotated = (await ask('POST', `${path}/rotate`, { overlapHours: 1 })).body.apiKey;
  const secrets = [platformKey, apiKey, rotated, 'EAAG-very-secret-token'];
  expect(secrets).toEqual(secrets.map(() => expect.any(String)));
  expect(await tablesHolding(api.database, secrets)).toEqual([]);
});

test('what a platform key changes is in the audit log, which it can read; the tenant does not see from where', async () => {
  const { id, authorization } = await addPlatformKey(api.database);
  const ask = clientWith(api, authorization);
  const { name, wabaId } = await tenantOf(ask);
  await ask('PUT', `/tenants/${name}/wabas/${wabaId}/keys/shop`, KEY);
  await ask('PATCH', `/tenants/${name}`, { state: 'suspended', suspendReason: 'unpaid' });
  const { body } = await ask('GET', `/audit?tenant=${name}`);
  expect(body.data.map(({ action }: { action: string }) => action)).toEqual([
    ...['tenant.suspended', 'key.created', 'waba.saved', 'tenant.external_id_set', 'tenant.created'],
  ]);
  for (const entry of body.data)
    expect(entry).toMatchObject({ actor: `platform key ${id}`, ip: '127.0.0.1' });
  const first = await ask('GET', `/audit?tenant=${name}&limit=2`);
  const rest = await ask('GET', `/audit?tenant=${name}&cursor=${first.body.nextCursor}`);
  expect([...first.body.data, ...rest.body.data]).toEqual(body.data);
});

test('a key is replaced with an overlap, deleted once, and its name is free again', async () => {
  const ask = await platformClient(api);
  const { name, wabaId } = await tenantOf(ask);
  const path = `/tenants/${name}/wabas/${wabaId}/keys/shop`;
  const ends = new Date(Date.now() + 86_400_000).toISOString();
  const first = await ask('PUT', path, { ...KEY, expiresAt: ends, allowedNetworks: ['127.0.0.0/8'] });
  const works = async (apiKey: string) =>
    (await api.app.inject({ url: '/api/external/key', headers: { authorization: `Bearer ${apiKey}` } }))
      .statusCode;
  const second = await ask('POST', `${path}/rotate`, { overlapHours: 1 });
  expect(second).toMatchObject({
    status: 200,
    body: { ...KEY, keyRef: 'shop', replacedKeyId: first.body.id, allowedNetworks: ['127.0.0.0/8'] },
  });
  // It lives as long as the first one was to, from now on.
  expect(Math.abs(Date.parse(second.body.expiresAt) - Date.parse(ends))).toBeLessThan(60_000);
  expect(await Promise.all([works(first.body.apiKey), works(second.body.apiKey)])).toEqual([200, 200]);
  const third = await ask('POST', `${path}/rotate`, { overlapHours: 0 });
  expect(await Promise.all([works(second.body.apiKey), works(third.body.apiKey)])).toEqual([401, 200]);
  expect((await ask('DELETE', path)).status).toBe(200);
  expect(await works(third.body.apiKey)).toBe(401);
  expect(errorOf(await ask('DELETE', path))).toEqual([404, 'unknown_key', null]);
  expect((await ask('PUT', path, KEY)).status).toBe(201);
});

test('a key gives only what the operator let it give, by PUT and by rotation', async () => {
  const all = await platformClient(api, { grantableScopes: ['read', 'read_events', 'send', 'export'] });
  const { name, wabaId } = await tenantOf(all);
  const ask = await platformClient(api);
  const keys = `/tenants/${name}/wabas/${wabaId}/keys`;
  for (const scope of ['read', 'read_events', 'export', 'erase', 'graph', 'graph_manage', 'graph_query']) {
    const refused = await ask('PUT', `${keys}/k-${scope}`, { name: 'x', scopes: ['send', scope] });
    expect(errorOf(refused)).toEqual([403, 'scope_not_grantable', 'scopes']);
    expect(refused.body.error.message).toContain(scope);
  }
  expect((await all('PUT', `${keys}/reader`, { name: 'x', scopes: ['read'] })).status).toBe(201);
  expect(errorOf(await ask('POST', `${keys}/reader/rotate`, { overlapHours: 0 }))).toEqual([
    403,
    'scope_not_grantable',
    'scopes',
  ]);
  expect(errorOf(await ask('PUT', `${keys}/reader`, { name: 'x', scopes: ['send'] }))).toEqual([
    409,
    'key_differs',
    'scopes',
  ]);
  const other = { name: 'x', scopes: ['read'], allowedNetworks: ['192.0.2.0/24'] };
  expect(errorOf(await all('PUT', `${keys}/reader`, other))).toEqual([409, 'key_differs', 'allowedNetworks']);
});

test('an endpoint is added once under a name, with its secret once, changed by a repetition, and deleted once', async () => {
  const ask = await platformClient(api);
  const { name, wabaId } = await tenantOf(ask);
  const path = `/tenants/${name}/wabas/${wabaId}/endpoints/crm`;
  const url = 'https://93.184.216.34/hook';
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => ask('PUT', path, { url, eventTypes: ['message'] })),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 201]);
  const secrets = answers.flatMap(({ body }) => (body.secret === undefined ? [] : [body.secret]));
  expect(secrets).toEqual([expect.stringMatching(/^whsec_/)]);
  const changed = await ask('PUT', path, { url, eventTypes: ['status'] });
  expect(changed).toMatchObject({ status: 200, body: { url, eventTypes: ['status'] } });
  expect(errorOf(await ask('PUT', path, { url, bufferSeconds: 5 }))).toEqual([
    422,
    'buffer_needs_conversation_order',
    'bufferSeconds',
  ]);
  const buffer = { bufferSeconds: 5, bufferMaxSeconds: 9, orderScope: 'conversation' };
  expect(await ask('PUT', path, { url, ...buffer })).toMatchObject({ status: 200, body: buffer });
  const ids = 'select id from webhook_endpoints where waba_id = :wabaId';
  expect(await queryColumn(api.database, ids, { wabaId })).toEqual([changed.body.id]);
  expect(errorOf(await ask('PUT', path, { url: 'http://93.184.216.34/' }))).toEqual([
    422,
    'invalid_url',
    'url',
  ]);
  expect(errorOf(await ask('PUT', path, { url: 'https://10.0.0.1/' }))).toEqual([422, 'invalid_url', 'url']);
  expect((await ask('DELETE', path)).body).toEqual({ id: changed.body.id, dropped: 0 });
  expect(errorOf(await ask('DELETE', path))).toEqual([404, 'not_found', null]);
});

test('a platform key sends nothing that is kept to a URL of its choice: it moves no endpoint under a replay', async () => {
  const ask = await platformClient(api);
  const { name, wabaId } = await tenantOf(ask);
  const path = `/tenants/${name}/wabas/${wabaId}/endpoints/crm`;
  const { id } = (await ask('PUT', path, { url: 'https://93.184.216.34/hook' })).body;
  await api.database.raw(
    `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid, attempts, replay)
     values (:id, gen_random_uuid(), 'due', true, current_date, gen_random_uuid(), current_date, gen_random_uuid(), 0, true)`,
    { id },
  );
  const moved = await ask('PUT', path, { url: 'https://93.184.216.34/other' });
  expect([moved.status, moved.body.error?.code]).toEqual([403, 'insufficient_scope']);
});

test('what is another tenant’s looks like what does not exist, and stays', async () => {
  const ask = await platformClient(api);
  const [one, other] = [await tenantOf(ask), await tenantOf(ask)];
  await ask('PUT', `/tenants/${other.name}/wabas/${other.wabaId}/keys/shop`, KEY);
  for (const [method, rest, body] of [
    ['GET', '/check', undefined],
    ['PUT', '/keys/shop', KEY],
    ['POST', '/keys/shop/rotate', { overlapHours: 0 }],
    ['DELETE', '/keys/shop', undefined],
    ['PUT', '/endpoints/crm', { url: 'https://93.184.216.34/hook' }],
    ['DELETE', '/endpoints/crm', undefined],
    ['DELETE', '', undefined],
  ] as const) {
    const answers = [other.wabaId, fresh().wabaId].map((id) =>
      ask(method, `/tenants/${one.name}/wabas/${id}${rest}`, body),
    );
    const [foreign, missing] = await Promise.all(answers);
    for (const answer of [foreign, missing]) {
      if (answer === undefined) throw new Error('no answer');
      expect([method, rest, ...errorOf(answer)]).toEqual([method, rest, 404, 'unknown_waba', null]);
    }
    expect(foreign?.body.error.message).toBe(missing?.body.error.message);
  }
  const taken = await ask('PUT', `/tenants/${one.name}/wabas/${other.wabaId}`, {});
  expect(errorOf(taken)).toEqual([409, 'waba_taken', null]);
  const phoneNumbers = [{ phoneNumberId: other.number }];
  const numberTaken = await ask('PUT', `/tenants/${one.name}/wabas/${one.wabaId}`, { phoneNumbers });
  expect(errorOf(numberTaken)).toEqual([409, 'phone_number_taken', 'phoneNumbers']);
  for (const { body } of [taken, numberTaken]) {
    expect(body.error.message).not.toContain(other.name);
    if (body === numberTaken.body) expect(body.error.message).not.toContain(other.wabaId);
  }
});
