import { expect, test } from 'vitest';
import { createKey } from '../../../src/accounts/api-keys.ts';
import { API_KEY_SCOPES, type ApiKeyScope } from '../../../src/domain/api-key-scopes.ts';
import { addKey, startTestApi, type TestApi, WABA } from './api-harness.ts';

/** Requests whose answer to a key that may use them is anything but 403; ids and bodies need not make sense. */
function secured(api: TestApi) {
  return api.routes.flatMap(({ method, url, config }) =>
    [method].flat().flatMap((one) => {
      const { scopes } = (config ?? {}) as { scopes?: readonly ApiKeyScope[] };
      const isDeclared = scopes !== undefined && one !== 'HEAD';
      return isDeclared ? [{ method: one as 'GET', url: url.replace(':id', '1'), scopes }] : [];
    }),
  );
}

async function keyWith(api: TestApi, scopes: readonly string[]): Promise<string> {
  const { apiKey } = await createKey({ database: api.database }, WABA, {
    name: 'x',
    expiresAt: null,
    scopes,
  });
  return `Bearer ${apiKey}`;
}

test('every route behind a key declares its scopes: a key has one of them or gets a 403 that names them', async () => {
  const api = await startTestApi();
  const requests = secured(api);
  expect(requests.length).toBeGreaterThan(25);
  for (const scope of API_KEY_SCOPES) {
    const authorization = await keyWith(api, [scope]);
    for (const { method, url, scopes } of requests) {
      const response = await api.app.inject({ method, url, headers: { authorization } });
      const { statusCode } = response;
      if (scopes.includes(scope)) {
        expect([method, url, statusCode]).not.toEqual([method, url, 403]);
        expect([method, url, statusCode]).not.toEqual([method, url, 401]);
        continue;
      }
      expect([method, url, scope, statusCode]).toEqual([method, url, scope, 403]);
      expect(response.json().error).toMatchObject({
        type: 'authentication_error',
        code: 'insufficient_scope',
        message: `The API key lacks the scope ${scopes.join(' or ')}.`,
      });
      expect(response.headers['www-authenticate']).toBe(
        `Bearer realm="heliograph", error="insufficient_scope", scope="${scopes.join(' ')}"`,
      );
    }
  }
});

test('only a key for webhooks changes them or sends events again; only one for sending sends', async () => {
  const api = await startTestApi();
  for (const { method, url, scopes } of secured(api)) {
    if (method === 'GET') continue;
    const expected =
      url.startsWith('/api/external/messages') || url.startsWith('/api/external/media')
        ? 'send'
        : 'manage_webhooks';
    expect([method, url, scopes]).toEqual([method, url, [expected]]);
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
