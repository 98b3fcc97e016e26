import { beforeAll, expect, test } from 'vitest';
import { PLATFORM_OPERATIONS } from '../../../../src/api/provisioning/operations.ts';
import { newPlatformKey } from '../../../../src/features/keys/api-key.ts';
import { PLATFORM_SCOPES } from '../../../../src/features/keys/platform-key-store.ts';
import { revokePlatformKey } from '../../../../src/features/keys/platform-keys.ts';
import { OPERATOR_COMMAND } from '../../../../src/platform/audit/audit.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { databaseDigest } from '../../../support/database-digest.ts';
import { addKey, apiOfFile, startTestApi, testConfig } from '../api-harness.ts';
import { addPlatformKey } from './platform-client.ts';

/** Every route of the platform API × every kind of key that must not get through. The routes are those that the server has. */

const api = apiOfFile();

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
type Route = { name: string; method: Method; url: string; scopes: readonly string[] };

const DOCUMENT = '/api/platform/openapi.json';

let routes: Route[];

beforeAll(() => {
  routes = api.routes
    .filter(({ url }) => url.startsWith('/api/platform') && url !== DOCUMENT)
    .flatMap(({ method, url, config }) =>
      [method].flat().map((one) => ({
        name: `${one} ${url}`,
        method: one as Method,
        url: url.replace(':externalId', 'acme').replace(':wabaId', '95123').replace(/:\w+/, 'ref'),
        scopes: (config as { platformScopes?: readonly string[] }).platformScopes ?? [],
      })),
    );
});

const answer = async (route: Route, authorization: string | undefined, remoteAddress = '127.0.0.1') => {
  const headers = authorization === undefined ? {} : { authorization };
  const response = await api.app.inject({ method: route.method, url: route.url, headers, remoteAddress });
  const isJson = response.body !== '' && String(response.headers['content-type']).includes('json');
  const { code } = isJson ? (response.json().error ?? {}) : {};
  return { name: route.name, status: response.statusCode, code };
};

/** HEAD has no body to say it in. */
const refusal = ({ name }: Route, status: number, code: string) => ({
  name,
  status,
  code: name.startsWith('HEAD') ? undefined : code,
});

async function unchanged(requests: () => Promise<void>): Promise<void> {
  const before = await databaseDigest(api.database);
  await requests();
  expect(await databaseDigest(api.database)).toEqual(before);
}

test('the routes are those of the description, each with its scope', () => {
  const described = PLATFORM_OPERATIONS.map(({ method, path }) => `${method} ${path}`);
  const registered = routes.map(({ name }) => name).filter((name) => !name.startsWith('HEAD '));
  expect(registered.sort()).toEqual(described.sort());
  expect(routes.filter(({ scopes }) => scopes.length === 0)).toEqual([]);
});

test('no key, an API key of a tenant, a made-up, revoked or expired platform key get 401 from every route and change nothing', async () => {
  const { authorization: ofTenant } = await addKey(api.database);
  const revoked = await addPlatformKey(api.database);
  await revokePlatformKey({ database: api.database, actor: OPERATOR_COMMAND }, revoked.id);
  const expired = await addPlatformKey(api.database, { expiresAt: new Date(Date.now() - 1_000) });
  const wrong = [undefined, 'Bearer ', ofTenant, `Bearer ${newPlatformKey()}`, revoked.authorization];
  await unchanged(async () => {
    for (const route of routes) {
      for (const authorization of wrong) {
        expect(await answer(route, authorization)).toEqual(refusal(route, 401, 'invalid_api_key'));
      }
      expect(await answer(route, expired.authorization)).toEqual(refusal(route, 401, 'expired_api_key'));
    }
  });
});

test('a platform key opens nothing of the External API, of the portal or of upstream’s API, with the answer that a made-up key gets', async () => {
  const { authorization } = await addPlatformKey(api.database);
  const others = api.routes.filter(
    ({ config }) => (config as { scopes?: unknown } | undefined)?.scopes !== undefined,
  );
  expect(others.length).toBeGreaterThan(40);
  await unchanged(async () => {
    for (const { method, url } of others) {
      const ask = async (header: string) => {
        const path = url.replaceAll(/:\w+/g, '1');
        const response = await api.app.inject({
          method: [method].flat()[0] as Method,
          url: path,
          headers: { authorization: header },
        });
        const { 'x-request-id': requestId } = response.headers;
        return { url, status: response.statusCode, body: response.body.replaceAll(String(requestId), '') };
      };
      const answered = await ask(authorization);
      expect([answered.url, answered.status]).toEqual([url, 401]);
      expect(answered).toEqual(await ask(`Bearer ${newPlatformKey()}`));
    }
  });
});

test('a key without the scope of a route gets a 403 that names it, whatever the request, and changes nothing', async () => {
  for (const scope of PLATFORM_SCOPES) {
    const { authorization } = await addPlatformKey(api.database, { scopes: [scope] });
    await unchanged(async () => {
      for (const route of routes.filter(({ scopes }) => !scopes.includes(scope))) {
        expect(await answer(route, authorization)).toEqual(refusal(route, 403, 'insufficient_scope'));
      }
    });
    for (const route of routes.filter(({ scopes }) => scopes.includes(scope))) {
      const { name, status } = await answer(route, authorization);
      expect([name, scope, status]).not.toEqual([name, scope, 403]);
    }
  }
});

test('a key is used from its networks alone; from elsewhere it takes nothing of its limit', async () => {
  const { authorization } = await addPlatformKey(api.database, { networks: ['203.0.113.0/28'] });
  await unchanged(async () => {
    for (const route of routes) {
      expect(await answer(route, authorization, '198.51.100.7')).toEqual(
        refusal(route, 403, 'ip_not_allowed'),
      );
    }
  });
  const own = routes.find(({ url }) => url.endsWith('/keys/self')) as Route;
  expect((await answer(own, authorization, '203.0.113.7')).status).toBe(200);
});

test('a revocation counts from the next request on', async () => {
  const { id, authorization } = await addPlatformKey(api.database);
  const own = routes.find(({ url }) => url.endsWith('/keys/self')) as Route;
  expect((await answer(own, authorization)).status).toBe(200);
  await execute(api.database, 'update platform_keys set revoked_at = now() where id = :id', { id });
  expect((await answer(own, authorization)).status).toBe(401);
});

test.each([
  [
    'outside of its networks',
    { HELIOGRAPH_PLATFORM_API_CIDRS: '203.0.113.0/28' },
    false,
    '198.51.100.7',
    404,
  ],
  ['inside of its networks', { HELIOGRAPH_PLATFORM_API_CIDRS: '203.0.113.0/28' }, false, '203.0.113.7', 200],
  [
    'on the public port, where operators have their own',
    { HELIOGRAPH_PORTAL_OPERATOR_LISTEN: '127.0.0.1:0' },
    false,
    '203.0.113.7',
    404,
  ],
  [
    'on the port of operators',
    { HELIOGRAPH_PORTAL_OPERATOR_LISTEN: '127.0.0.1:0' },
    true,
    '203.0.113.7',
    200,
  ],
])(
  '%s it is not there, document and all, or it is',
  async (_where, settings, isOperatorListener, remoteAddress, status) => {
    const own = await startTestApi(async () => ({ config: testConfig(settings), isOperatorListener }));
    const { authorization } = await addPlatformKey(own.database);
    for (const url of ['/api/platform/keys/self', DOCUMENT]) {
      const response = await own.app.inject({ url, headers: { authorization }, remoteAddress });
      expect([url, response.statusCode]).toEqual([url, status]);
      if (status === 404) expect(response.json().error.code).toBe('route_not_found');
    }
  },
);
