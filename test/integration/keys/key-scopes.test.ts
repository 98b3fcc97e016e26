import { expect, test } from 'vitest';
import { createKey } from '../../../src/keys/api-keys.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { addKey, startTestApi, type TestApi, WABA } from '../api/api-harness.ts';
import { matrixRoutes } from '../api/route-matrix.ts';

async function keyWith(api: TestApi, scopes: readonly string[]): Promise<string> {
  const { apiKey } = await createKey({ database: api.database, actor: OPERATOR_COMMAND }, WABA, {
    name: 'x',
    expiresAt: null,
    scopes,
  });
  return `Bearer ${apiKey}`;
}

const SCOPE_OF = [
  ['messages', 'send'],
  ['media', 'send'],
  ['erasures', 'erase'],
  ['exports', 'export'],
] as const;

test('only a key for webhooks changes them or sends events again; sending, erasing and exporting need their own', async () => {
  const api = await startTestApi();
  const secured = matrixRoutes(api.routes).filter(({ scopes }) => scopes !== undefined);
  for (const { method, url, scopes } of secured) {
    if (method === 'GET' || method === 'HEAD') continue;
    const named = SCOPE_OF.find(([path]) => url.startsWith(`/api/external/${path}`));
    expect([method, url, scopes]).toEqual([method, url, [named?.[1] ?? 'manage_webhooks']]);
  }
});

test('GET /api/external/key shows the key of the request, not the key itself, and all scopes unless limited', async () => {
  const api = await startTestApi();
  const expiresAt = new Date(Date.now() + 60_000);
  const { id, key, authorization } = await addKey(api.database, WABA, expiresAt);
  const own = async (header: string) =>
    await api.app.inject({ url: '/api/external/key', headers: { authorization: header } });
  const response = await own(authorization);
  expect(response.json()).toEqual({
    id,
    prefix: key.slice(0, 11),
    lastFour: key.slice(-4),
    name: 'test',
    wabaId: WABA,
    scopes: ['read', 'send', 'manage_webhooks'],
    createdAt: expect.any(String),
    expiresAt: expiresAt.toISOString(),
    // Noted beside the request: it may be there already.
    lastUsedAt: response.json().lastUsedAt,
  });
  expect(response.body).not.toContain(key);
  await expect.poll(async () => (await own(authorization)).json().lastUsedAt).toEqual(expect.any(String));
  expect((await own(await keyWith(api, ['send', 'send']))).json().scopes).toEqual(['send']);
});

test('a key without scopes, or with one that is unknown, cannot be made', async () => {
  const api = await startTestApi();
  for (const scopes of [[], ['write'], ['read', '']]) {
    await expect(keyWith(api, scopes)).rejects.toMatchObject({ code: 'invalid_value' });
  }
});
