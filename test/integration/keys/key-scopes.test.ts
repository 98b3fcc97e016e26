import { beforeEach, expect, test } from 'vitest';
import { createKey, limitKey } from '../../../src/features/keys/api-keys.ts';
import { decideKeyRequest, waitingKeyRequests } from '../../../src/features/keys/key-requests.ts';
import { revealKey } from '../../../src/features/keys/reveal-key.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { type FreshTenant, freshTenant } from '../../support/test-accounts.ts';
import { addKey, apiOfFile } from '../api/api-harness.ts';
import { isOfFacade, matrixRoutes } from '../api/route-matrix.ts';
import { markupProblems } from '../portal/markup-problems.ts';
import { newUser } from '../portal/portal-browser.ts';

const api = apiOfFile();
let tenant: FreshTenant;

beforeEach(async () => {
  tenant = await freshTenant(api.database);
});

const tools = () => ({ database: api.database, actor: OPERATOR_COMMAND });

async function keyWith(scopes: readonly string[]): Promise<string> {
  const { apiKey } = await createKey(tools(), tenant.wabaId, { name: 'x', expiresAt: null, scopes });
  return `Bearer ${apiKey}`;
}

const get = (url: string, authorization: string, remoteAddress?: string) =>
  api.app.inject({ url, headers: { authorization }, ...(remoteAddress && { remoteAddress }) });

const SCOPE_OF = [
  ['messages', 'send'],
  ['media', 'send'],
  ['template-media', 'send'],
  ['erasures', 'erase'],
  ['exports', 'export'],
  // A search changes nothing; its number stands in the body instead of the address.
  ['conversations/search', 'read'],
  ['conversations/', 'send'],
  ['opt-outs/search', 'read'],
  ['opt-outs', 'send'],
  ['broadcasts', 'send'],
] as const;

test('only a key for webhooks changes them or sends events again; sending, erasing, exporting and the facade need their own (`facade-matrix`)', async () => {
  const secured = matrixRoutes(api.routes).filter(({ scopes }) => scopes !== undefined);
  for (const { method, url, scopes } of secured) {
    if (method === 'GET' || method === 'HEAD' || isOfFacade(url)) continue;
    const named = SCOPE_OF.find(([path]) => url.startsWith(`/api/external/${path}`));
    expect([method, url, scopes]).toEqual([method, url, [named?.[1] ?? 'manage_webhooks']]);
  }
});

test('GET /api/external/key shows the key of the request, not the key itself, and its scopes', async () => {
  const expiresAt = new Date(Date.now() + 60_000);
  const { id, key, authorization } = await addKey(api.database, tenant.wabaId, expiresAt);
  const own = (header: string) => get('/api/external/key', header);
  const response = await own(authorization);
  expect(response.json()).toEqual({
    id,
    prefix: key.slice(0, 11),
    lastFour: key.slice(-4),
    name: 'test',
    wabaId: tenant.wabaId,
    scopes: ['read', 'send', 'manage_webhooks'],
    createdAt: expect.any(String),
    expiresAt: expiresAt.toISOString(),
    // Noted beside the request: it may be there already.
    lastUsedAt: response.json().lastUsedAt,
  });
  expect(response.body).not.toContain(key);
  await expect.poll(async () => (await own(authorization)).json().lastUsedAt).toEqual(expect.any(String));
  expect((await own(await keyWith(['send', 'send']))).json().scopes).toEqual(['send']);
});

test('a key without scopes, or with one that is unknown, cannot be made', async () => {
  for (const scopes of [[], ['write'], ['read', '']]) {
    await expect(keyWith(scopes)).rejects.toMatchObject({ code: 'invalid_value' });
  }
});

test('a key that manages webhooks reads no bodies of events unless that is asked for too', async () => {
  const statusWith = async (scopes: string[], url: string) =>
    (await get(url, await keyWith(scopes))).statusCode;
  const events = '/api/external/events';
  expect(await statusWith(['manage_webhooks'], events)).toBe(403);
  expect(await statusWith(['manage_webhooks'], '/api/external/webhook-endpoints')).toBe(200);
  expect(await statusWith(['manage_webhooks', 'read_events'], events)).toBe(200);
  expect(await statusWith(['read'], events)).toBe(200);
  expect(await statusWith(['read_events'], '/api/external/conversations')).toBe(403);
});

test('a key made without scopes may only read', async () => {
  const { scopes } = await createKey(tools(), tenant.wabaId, { name: 'x', expiresAt: null });
  expect(scopes).toEqual(['read']);
});

test('a key with networks is served from these only, IPv4 in any form, from the next request on', async () => {
  const allowedNetworks = ['192.0.2.0/24', '2001:db8::7', ' 198.51.100.9 '];
  const key = { name: 'x', expiresAt: null, allowedNetworks };
  const { id, apiKey, allowedNetworks: stored } = await createKey(tools(), tenant.wabaId, key);
  expect(stored).toEqual(['192.0.2.0/24', '2001:db8::7/128', '198.51.100.9/32']);
  const ask = async (remoteAddress: string) => {
    const response = await get('/me', `Bearer ${apiKey}`, remoteAddress);
    return response.statusCode === 200 ? 200 : [response.statusCode, response.json().error.code];
  };
  const refused = [403, 'ip_not_allowed'];
  // A stolen key takes nothing of the tenant's limit from elsewhere.
  const limitLeft = async () => {
    const { headers: answered } = await get('/me', `Bearer ${apiKey}`, '192.0.2.9');
    return Number(answered['x-ratelimit-remaining'] ?? answered['ratelimit-remaining']);
  };
  const before = (await limitLeft()) - 1;
  for (const address of ['192.0.2.200', '::ffff:192.0.2.1', '2001:db8::7', '198.51.100.9']) {
    expect([address, await ask(address)]).toEqual([address, 200]);
  }
  for (const address of ['192.0.3.1', '2001:db8::8', '198.51.100.8', '::1', '127.0.0.1']) {
    expect([address, await ask(address)]).toEqual([address, refused]);
  }
  expect(await limitLeft()).toBe(before - 4);
  await limitKey(tools(), tenant.wabaId, id, ['127.0.0.1']);
  expect([await ask('127.0.0.1'), await ask('192.0.2.1')]).toEqual([200, refused]);
  await limitKey(tools(), tenant.wabaId, id, null);
  expect(await ask('203.0.113.1')).toBe(200);
  for (const wrong of [['300.1.1.1'], ['10.0.0.0/33'], ['shop.example'], Array(51).fill('10.0.0.0/8')]) {
    const given = wrong.map((text, n) => (wrong.length > 1 ? `10.0.0.${n}` : text));
    await expect(limitKey(tools(), tenant.wabaId, id, given)).rejects.toMatchObject({
      code: 'invalid_value',
    });
  }
  const other = await freshTenant(api.database);
  await expect(limitKey(tools(), other.wabaId, id, null)).rejects.toMatchObject({ code: 'unknown_key' });
});

test('networks are asked for with a key, shown to who decides, and changed on a page', async () => {
  const { browser: admin } = await newUser(api, tenant.tenantId, 'admin');
  const path = `/portal/w/${tenant.wabaId}/keys`;
  const form = await admin.get(`${path}/new`);
  expect(form.body).toMatch(/value="read"[^>]* checked/);
  expect(form.body).not.toMatch(/value="send"[^>]* checked/);
  expect(await markupProblems(form.body)).toEqual([]);
  const fields = { purpose: 'orders', scopes: 'read', validDays: '90' };
  const wrong = await admin.post(`${path}/requests`, { ...fields, allowedNetworks: 'nonsense' });
  expect([wrong.statusCode, wrong.body.includes('CIDR')]).toEqual([422, true]);
  await admin.post(`${path}/requests`, { ...fields, allowedNetworks: '192.0.2.0/24\r\n198.51.100.7' });
  const [request] = await waitingKeyRequests(tools());
  expect(request?.allowedNetworks).toEqual(['192.0.2.0/24', '198.51.100.7/32']);
  await decideKeyRequest(tools(), request?.id ?? '', { state: 'approved', note: '' });
  const { id, allowedNetworks } = await revealKey(tools(), tenant.wabaId, request?.id ?? '');
  expect(allowedNetworks).toEqual(request?.allowedNetworks);
  const page = await admin.get(`${path}/${id}/networks`);
  expect([page.statusCode, page.body.includes('198.51.100.7/32'), await markupProblems(page.body)]).toEqual([
    200,
    true,
    [],
  ]);
  expect((await admin.post(`${path}/${id}/networks`, { allowedNetworks: '10.0.0.0/99' })).statusCode).toBe(
    422,
  );
  const saved = await admin.post(`${path}/${id}/networks`, { allowedNetworks: '10.0.0.0/8' });
  expect(saved.headers.location).toBe(`${path}?done=limited`);
  const list = await admin.get(path);
  expect([list.body.includes('10.0.0.0/8'), await markupProblems(list.body)]).toEqual([true, []]);
});
