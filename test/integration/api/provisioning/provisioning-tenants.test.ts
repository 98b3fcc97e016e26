import { expect, test } from 'vitest';
import { freshTenant } from '../../../support/test-accounts.ts';
import { addConversation, apiOfFile, testConfig, WABA } from '../api-harness.ts';
import { errorOf, fresh, platformClient, tenantOf } from './platform-client.ts';

const EVENT_DAYS = 40;
const api = apiOfFile(async () => ({
  config: testConfig({ HELIOGRAPH_RETENTION_EVENTS_DAYS: String(EVENT_DAYS) }),
}));

const KEY = { name: 'shop server', scopes: ['send', 'manage_webhooks'] };

test('a tenant that was made elsewhere gets an id, one only, and a new one when asked', async () => {
  const ask = await platformClient(api);
  const { tenantId, wabaId } = await freshTenant(api.database, 'Old Store');
  const userId = Number(tenantId);
  const [first, second, third] = [fresh().name, fresh().name, fresh().name];
  const adopted = await ask('PUT', `/tenants/${first}`, { businessName: 'Old Store', userId });
  expect(adopted).toMatchObject({ status: 201, body: { userId, externalId: first, wabas: [{ wabaId }] } });
  expect(errorOf(await ask('PUT', `/tenants/${second}`, { businessName: 'x', userId }))).toEqual([
    409,
    'tenant_has_external_id',
    null,
  ]);
  await ask('PUT', `/tenants/${second}`, { businessName: 'Other' });
  expect(errorOf(await ask('PUT', `/tenants/${second}`, { businessName: 'x', userId }))).toEqual([
    409,
    'external_id_taken',
    'userId',
  ]);
  expect(errorOf(await ask('PATCH', `/tenants/${first}`, { newExternalId: second }))).toEqual([
    409,
    'external_id_taken',
    'newExternalId',
  ]);
  expect((await ask('PATCH', `/tenants/${first}`, { newExternalId: third })).body).toMatchObject({
    userId,
    externalId: third,
  });
  expect(errorOf(await ask('GET', `/tenants/${first}`))).toEqual([404, 'unknown_tenant', null]);
  expect(
    errorOf(await ask('PUT', `/tenants/${fresh().name}`, { businessName: 'x', userId: 999_999_999 })),
  ).toEqual([404, 'unknown_tenant', null]);
});

test('a tenant is removed by its id twice over, once; the id is free, its WABA is not', async () => {
  const ask = await platformClient(api);
  const { name, wabaId, number } = await tenantOf(ask);
  // With a conversation, the rows of WABA and tenant stay.
  await addConversation(api.database, { wabaId, phoneNumberId: number });
  const { apiKey } = (await ask('PUT', `/tenants/${name}/wabas/${wabaId}/keys/shop`, KEY)).body;
  expect(errorOf(await ask('DELETE', `/tenants/${name}`, { confirm: 'acme' }))).toEqual([
    400,
    'invalid_parameter',
    'confirm',
  ]);
  expect(errorOf(await ask('DELETE', `/tenants/${name}`))).toEqual([400, 'invalid_parameter', null]);
  expect(await ask('DELETE', `/tenants/${name}`, { confirm: name })).toMatchObject({
    status: 200,
    body: { wabaIds: [wabaId], kept: [wabaId] },
  });
  const headers = { authorization: `Bearer ${apiKey}` };
  expect((await api.app.inject({ url: '/api/external/key', headers })).statusCode).toBe(401);
  expect(errorOf(await ask('DELETE', `/tenants/${name}`, { confirm: name }))).toEqual([
    404,
    'unknown_tenant',
    null,
  ]);
  expect((await ask('PUT', `/tenants/${name}`, { businessName: 'Another' })).status).toBe(201);
  expect(errorOf(await ask('PUT', `/tenants/${name}/wabas/${wabaId}`, {}))).toEqual([
    409,
    'waba_taken',
    null,
  ]);
});

test('a list has every tenant once, page by page, and knows suspended and changed ones', async () => {
  const ask = await platformClient(api);
  const since = new Date(Date.now() - 1_000).toISOString();
  const made = [await tenantOf(ask), await tenantOf(ask), await tenantOf(ask)];
  await ask('PATCH', `/tenants/${made[1]?.name}`, { state: 'suspended' });
  const seen: { userId: number; externalId: string | null }[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body }: { body: { data: typeof seen; nextCursor: string | null } } = await ask(
      'GET',
      `/tenants?limit=2&updatedSince=${since}${cursor === '' ? '' : `&cursor=${cursor}`}`,
    );
    seen.push(...body.data);
    cursor = body.nextCursor;
  }
  // Those that were made elsewhere have no external id.
  expect(new Set(seen.map(({ userId }) => userId)).size).toBe(seen.length);
  expect(seen.map(({ externalId }) => externalId)).toEqual(
    expect.arrayContaining(made.map(({ name }) => name)),
  );
  const { body } = await ask('GET', `/tenants?state=suspended&limit=100`);
  const names = body.data.map(({ externalId }: { externalId: string }) => externalId);
  expect(names).toContain(made[1]?.name);
  expect(names).not.toContain(made[0]?.name);
  expect(errorOf(await ask('GET', '/tenants?state=gone'))).toEqual([400, 'invalid_parameter', 'state']);
  expect(errorOf(await ask('GET', '/tenants?cursor=AAAABBBBCCCCDDDDEEEEFFFFGGGG'))).toEqual([
    400,
    'invalid_cursor',
    'cursor',
  ]);
});

test('quotas are set and taken away, and never above what the installation allows', async () => {
  const ask = await platformClient(api);
  const { name } = await tenantOf(ask);
  const policy = `/tenants/${name}/policy`;
  expect(await ask('PUT', policy, { mediaDays: 90 })).toMatchObject({
    status: 200,
    body: { mediaDays: 90, messageDays: null },
  });
  expect((await ask('GET', `/tenants/${name}`)).body.quotas.mediaDays).toBe(90);
  expect((await ask('PUT', policy, { mediaDays: null })).body.mediaDays).toBe(null);
  // What the installation has holds where the tenant has nothing.
  const { eventDays } = (await ask('GET', `/tenants/${name}`)).body.quotas;
  expect([eventDays, (await ask('PUT', policy, {})).body.eventDays]).toEqual([EVENT_DAYS, null]);
  expect(errorOf(await ask('PUT', policy, { eventDays: 36_000 }))).toEqual([
    400,
    'invalid_parameter',
    'eventDays',
  ]);
  expect(errorOf(await ask('PUT', policy, { color: 1 }))).toEqual([400, 'invalid_parameter', 'color']);
});

test.each(['a%2Fb', '%00', 'a%20b', 'a'.repeat(129), '...', '~a', 'ä', '%20'])(
  'refuses the id %s',
  async (id) => {
    const ask = await platformClient(api);
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE'] as const) {
      const answer = await ask(
        method,
        `/tenants/${id}`,
        method === 'GET' ? undefined : { businessName: 'x' },
      );
      expect(errorOf(answer)).toEqual([400, 'invalid_parameter', 'externalId']);
    }
    const { name, wabaId } = await tenantOf(ask);
    expect(errorOf(await ask('PUT', `/tenants/${name}/wabas/${wabaId}/keys/${id}`, KEY))).toEqual([
      400,
      'invalid_parameter',
      'keyRef',
    ]);
  },
);

test('refuses unknown members, wrong values and large bodies, and makes nothing of them', async () => {
  const ask = await platformClient(api);
  const { name } = fresh();
  const put = (body: object) => ask('PUT', `/tenants/${name}`, body);
  expect(errorOf(await put({ businessName: 'x', colour: 'red' }))).toEqual([
    400,
    'invalid_parameter',
    'colour',
  ]);
  expect(errorOf(await put({ businessName: ' ' }))[0]).toBe(400);
  expect(errorOf(await put({ businessName: 'x', metadata: { ['n'.repeat(41)]: 'x' } }))).toEqual([
    400,
    'invalid_parameter',
    'metadata',
  ]);
  expect(errorOf(await put({ businessName: 'x', metadata: { n: 'x'.repeat(501) } }))).toEqual([
    400,
    'invalid_parameter',
    'metadata',
  ]);
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`n${index}`, '']));
  expect(errorOf(await put({ businessName: 'x', metadata: many }))).toEqual([
    400,
    'invalid_parameter',
    'metadata',
  ]);
  expect(errorOf(await put({ businessName: 'x', metadata: { n: 'a\u0000b' } }))[0]).toBe(400);
  expect(errorOf(await put({ businessName: 'x', metadata: { n: 'x'.repeat(70_000) } }))).toEqual([
    413,
    'body_too_large',
    null,
  ]);
  expect(errorOf(await ask('GET', `/tenants/${name}`))).toEqual([404, 'unknown_tenant', null]);
  expect(
    errorOf(await ask('PATCH', `/tenants/${(await tenantOf(ask)).name}`, { suspendReason: 'x' })),
  ).toEqual([400, 'invalid_parameter', 'suspendReason']);
});

test('a program cannot reach the WABA of a tenant that it has not named', async () => {
  const ask = await platformClient(api);
  const { name } = await tenantOf(ask);
  expect(errorOf(await ask('DELETE', `/tenants/${name}/wabas/${WABA}`))).toEqual([404, 'unknown_waba', null]);
});
