import { expect, test } from 'vitest';
import { queryColumn } from '../../../../src/platform/postgres/sql.ts';
import { freshTenant } from '../../../support/test-accounts.ts';
import { apiOfFile, testConfig } from '../api-harness.ts';
import { errorOf, type PlatformClient, platformClient, tenantOf } from './platform-client.ts';

const PRODUCT = 'https://crm.example';
const APP = {
  HELIOGRAPH_UPSTREAM_APP_ID: '700000000000001',
  HELIOGRAPH_UPSTREAM_SIGNUP_CONFIG_ID: '700000000000002',
};

const api = apiOfFile(async () => ({
  config: testConfig({ HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: PRODUCT, ...APP }),
}));
const withoutApp = apiOfFile(async () => ({
  config: testConfig({ HELIOGRAPH_PORTAL_PRODUCT_ORIGINS: PRODUCT }),
}));

async function shopOf(ask: PlatformClient) {
  const tenant = await tenantOf(ask);
  const path = `/tenants/${tenant.name}/setup-links`;
  const make = (given: object = {}, headers: Record<string, string> = {}) =>
    ask('POST', path, { successUrl: `${PRODUCT}/done`, failureUrl: `${PRODUCT}/failed`, ...given }, headers);
  return { ...tenant, path, make };
}

test('a link is shown once, is good for a week, and is listed without its address', async () => {
  const ask = await platformClient(api);
  const { path, make } = await shopOf(ask);
  const { status, body } = await make({ state: 'visit-42' });
  expect([status, body.error]).toEqual([201, undefined]);
  const { url, ...link } = body;
  expect(url).toMatch(/^https:\/\/heliograph\.example\/setup\/open\/[\w-]{43}$/);
  expect(link).toMatchObject({
    state: 'open',
    mode: 'signup',
    connections: ['cloud', 'coexistence'],
    failure: null,
  });
  const hours = (Date.parse(link.expiresAt) - Date.parse(link.createdAt)) / 3_600_000;
  expect(Math.round(hours)).toBe(168);
  expect(await ask('GET', `${path}/${link.id}`)).toMatchObject({ status: 200, body: link });
  const listed = await ask('GET', path);
  expect(listed.body).toMatchObject({ data: [link], hasMore: false });
  expect(JSON.stringify(listed.body)).not.toContain(url.split('/').at(-1));
  expect((await ask('GET', `${path}?state=done`)).body.data).toEqual([]);
});

test('a repetition with the Idempotency-Key gets the same link again, side by side too, and its address is in no table', async () => {
  const ask = await platformClient(api);
  const { path, make } = await shopOf(ask);
  const headers = { 'idempotency-key': 'visit-42' };
  const made = await Promise.all(Array.from({ length: 6 }, () => make({ state: 'a' }, headers)));
  expect(made.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 200, 201]);
  const [first] = made;
  expect(new Set(made.map(({ body }) => `${body.id} ${body.url}`)).size).toBe(1);
  for (const given of [{ state: 'b' }, { state: 'a', expiresInHours: 1 }, { state: 'a', successUrl: 'x' }]) {
    expect(errorOf(await make(given, headers))).toEqual([422, 'idempotency_key_reused', null]);
  }
  expect(errorOf(await make({}, { 'idempotency-key': 'é' }))).toEqual([
    400,
    'invalid_parameter',
    'Idempotency-Key',
  ]);
  const other = await make({ state: 'a' }, { 'idempotency-key': 'visit-43' });
  const elsewhere = await (await shopOf(ask)).make({ state: 'a' }, headers);
  expect([other, elsewhere].map(({ status }) => status)).toEqual([201, 201]);
  expect(new Set([first, other, elsewhere].map((one) => one?.body.url)).size).toBe(3);
  expect((await ask('GET', path)).body.data).toHaveLength(2);
  const token = String(first?.body.url).split('/').at(-1) ?? 'none';
  const rows = await queryColumn<string>(api.database, 'select cast(s as text) from setup_links s');
  expect(rows.filter((row) => row.includes(token))).toEqual([]);
});

test('a tenant has five open links; a revoked one makes room, and stays revoked', async () => {
  const ask = await platformClient(api);
  const { path, make } = await shopOf(ask);
  const made = await Promise.all(Array.from({ length: 8 }, () => make()));
  const open = made.filter(({ status }) => status === 201).map(({ body }) => body.id);
  expect(open).toHaveLength(5);
  expect(made.filter(({ status }) => status === 409).map(errorOf)).toEqual(
    Array(3).fill([409, 'too_many_setup_links', null]),
  );
  const again = [await ask('DELETE', `${path}/${open[0]}`), await ask('DELETE', `${path}/${open[0]}`)];
  expect(again.map(({ status, body }) => [status, body.state])).toEqual(Array(2).fill([200, 'revoked']));
  expect((await make()).status).toBe(201);
  const other = await shopOf(ask);
  expect((await other.make()).status).toBe(201);
});

test('without an app in the settings, signup is refused, and a link with steps is made', async () => {
  const { make } = await shopOf(await platformClient(withoutApp));
  for (const given of [{}, { mode: 'signup' }]) {
    expect(errorOf(await make(given))).toEqual([409, 'signup_not_configured', 'mode']);
  }
  expect(await make({ mode: 'steps' })).toMatchObject({ status: 201, body: { mode: 'steps' } });
});

test('ways back lead to the product only', async () => {
  const { make } = await shopOf(await platformClient(api));
  for (const url of [
    'https://evil.example/',
    'http://crm.example/',
    'https://crm.example@evil.example/',
    'https://asha@crm.example/',
    'https://:secret@crm.example/',
    'x',
    '',
  ]) {
    expect(errorOf(await make({ successUrl: url }))).toEqual([422, 'url_not_allowed', 'successUrl']);
    expect(errorOf(await make({ failureUrl: url }))).toEqual([422, 'url_not_allowed', 'failureUrl']);
  }
});

test('bad input is refused with the name of the member', async () => {
  const ask = await platformClient(api);
  const { make, number } = await shopOf(ask);
  const foreign = await freshTenant(api.database);
  const cases: [object, [number, string, string]][] = [
    [{ connections: ['fax'] }, [400, 'invalid_parameter', 'connections/0']],
    [{ connections: [] }, [400, 'invalid_parameter', 'connections']],
    [{ expiresInHours: 721 }, [400, 'invalid_parameter', 'expiresInHours']],
    [{ expiresInHours: 0 }, [400, 'invalid_parameter', 'expiresInHours']],
    [{ state: 'x'.repeat(256) }, [400, 'invalid_parameter', 'state']],
    [{ mode: 'magic' }, [400, 'invalid_parameter', 'mode']],
    [{ reconnectPhoneNumberId: foreign.number }, [422, 'unknown_phone_number', 'reconnectPhoneNumberId']],
    [{ reconnectPhoneNumberId: '1' }, [422, 'unknown_phone_number', 'reconnectPhoneNumberId']],
  ];
  for (const [given, expected] of cases)
    expect([given, errorOf(await make(given))]).toEqual([given, expected]);
  const own = await make({ reconnectPhoneNumberId: number });
  expect(own).toMatchObject({ status: 201, body: { reconnectPhoneNumberId: number } });
});

test('a link of another tenant is none, and a suspended tenant gets none', async () => {
  const ask = await platformClient(api);
  const [shop, other] = [await shopOf(ask), await shopOf(ask)];
  const { body } = await shop.make();
  for (const method of ['GET', 'DELETE'] as const) {
    expect(errorOf(await ask(method, `${other.path}/${body.id}`))).toEqual([404, 'unknown_setup_link', null]);
    expect(errorOf(await ask(method, `${other.path}/sl_999999`))).toEqual([404, 'unknown_setup_link', null]);
  }
  expect((await ask('GET', `${shop.path}/${body.id}`)).body.state).toBe('open');
  await ask('PATCH', `/tenants/${shop.name}`, { state: 'suspended' });
  expect(errorOf(await shop.make())).toEqual([403, 'tenant_suspended', null]);
});

test('each needs its scope', async () => {
  const ask = await platformClient(api);
  const { path } = await shopOf(ask);
  const reader = await platformClient(api, { scopes: ['read'] });
  const maker = await platformClient(api, { scopes: ['setup_links'] });
  expect((await reader('GET', path)).status).toBe(200);
  expect(errorOf(await reader('POST', path, {}))).toMatchObject([403, 'insufficient_scope', null]);
  expect(errorOf(await maker('GET', path))).toMatchObject([403, 'insufficient_scope', null]);
});
