import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API_KEY_SCOPES, newApiKey } from '../../../src/features/keys/api-key.ts';
import { revokeApiKey } from '../../../src/features/keys/api-key-store.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { databaseDigest, objectIdsOf } from '../../support/database-digest.ts';
import { addAccountObjects, spreadIds } from './account-objects.ts';
import { addKey, NUMBER, OTHER_NUMBER, OTHER_WABA, startTestApi, type TestApi, WABA } from './api-harness.ts';
import { startUpstream } from './api-upstream.ts';
import { BODIES, REFERENCES_NEED, SEARCHES } from './matrix-bodies.ts';
import {
  type Answer,
  ask,
  askedOnce,
  IMPOSSIBLE_IDS,
  idMembers,
  isOfFacade,
  isStream,
  type MatrixRoute,
  matrixRoutes,
  pathWith,
  unknownIdLike,
} from './route-matrix.ts';

/**
 * Every route of the External API × every kind of key and of object that must not get through. The routes are those
 * that the server has registered and the ids are those that the database holds, so a new route is covered by itself.
 * Those of the facade, which answer in upstream's form, are in `graph/facade-matrix.test.ts`.
 */

/** All that answers without an API key. What is registered elsewhere must be behind one. */
const WITHOUT_KEY =
  /^\/(|assets\/.*|docs(\/.*)?|llms(-full)?\.txt|healthz|readyz|received_media\/:token|upstream\/webhook|portal(\/.*)?|setup\/.*)$/;
const PUBLIC_OF_THE_API = ['/api/external/test', '/api/external/openapi.json'];

const UNKNOWN_ID = '123456789012345';

let api: TestApi;
let close: () => Promise<void>;
let routes: MatrixRoute[];
let own: { authorization: string; ids: string[] };
let other: { authorization: string; ids: string[] };

beforeAll(async () => {
  const upstream = await startUpstream();
  api = await startTestApi(upstream.overrides, (closeApi) => {
    close = async () => {
      await closeApi();
      await upstream.close();
    };
  });
  const { database } = api;
  await upstream.addTokens(database);
  await spreadIds(database);
  const accountOf = async (wabaId: string, phoneNumberId: string) => {
    await addAccountObjects(database, { wabaId, phoneNumberId });
    const { id: keyId, authorization } = await addKey(database, wabaId);
    await execute(database, 'update api_keys set scopes = :apiKeyScopes where id = :keyId', {
      apiKeyScopes: API_KEY_SCOPES,
      keyId,
    });
    return { authorization, ids: await objectIdsOf(database, wabaId) };
  };
  own = await accountOf(WABA, NUMBER);
  other = await accountOf(OTHER_WABA, OTHER_NUMBER);
  routes = matrixRoutes(api.routes).filter(({ scopes, url }) => scopes !== undefined && !isOfFacade(url));
});
afterAll(() => close());

/** Runs requests that must not change anything, and compares all tables before and after. */
async function unchanged(requests: () => Promise<void>): Promise<void> {
  const before = await databaseDigest(api.database);
  await requests();
  expect(await databaseDigest(api.database)).toEqual(before);
}

/** Without a body that is valid the id would not be looked at: an empty one, or the first of the documentation. */
function bodyOf(route: MatrixRoute): unknown {
  return route.body === undefined ? undefined : (BODIES[route.operationId] ?? {});
}

const withoutId = (answer: Answer, id: string) => ({ ...answer, body: answer.body.replaceAll(id, 'THE_ID') });

test('what is registered is behind an API key, or is known to be public', () => {
  const open = matrixRoutes(api.routes).filter(({ scopes }) => scopes === undefined);
  // Those of the platform API are in `provisioning/platform-matrix.test.ts`.
  const unexpected = open.filter(
    ({ url }) =>
      !WITHOUT_KEY.test(url) && !PUBLIC_OF_THE_API.includes(url) && !/^\/api\/platform\//.test(url),
  );
  expect(unexpected.map(({ name }) => name)).toEqual([]);
  expect(routes.length).toBeGreaterThan(40);
  expect(routes.filter(({ operationId }) => operationId === '').map(({ name }) => name)).toEqual([]);
});

describe('a key that is none', () => {
  test('gets one and the same 401 with a challenge from every route, another only where none was sent, and changes nothing', async () => {
    const revoked = await addKey(api.database);
    await revokeApiKey(api.database, WABA, revoked.id);
    const expiredAndRevoked = await addKey(api.database, WABA, new Date(Date.now() - 1000));
    await revokeApiKey(api.database, WABA, expiredAndRevoked.id);
    const key = own.authorization.slice('Bearer '.length);
    const presented = [
      ...['nonsense', newApiKey(), key.toUpperCase(), `${key}0`, key.slice(0, -1), ` ${newApiKey()}`],
      ...[`ck_${'g'.repeat(64)}`, 'x'.repeat(9000)],
    ].map((token) => `Bearer ${token}`);
    presented.push(revoked.authorization, expiredAndRevoked.authorization);
    const notPresented = [
      ...[undefined, '', 'Bearer', 'Bearer ', 'Basic dXNlcjpwYXNz', key, `Token ${key}`],
      `${own.authorization} x`,
    ];
    await unchanged(async () => {
      for (const route of routes) {
        const path = pathWith(route, UNKNOWN_ID);
        const bodies = { presented: new Set<string>(), none: new Set<string>() };
        for (const authorization of [...presented, ...notPresented]) {
          const given = authorization === undefined ? {} : { authorization };
          const answer = await ask(api, route, path, { ...given, body: bodyOf(route) });
          const isPresented = presented.includes(authorization ?? '');
          const hint = isPresented ? ', error="invalid_token"' : '';
          expect([route.name, authorization, answer.status]).toEqual([route.name, authorization, 401]);
          expect(answer.headers['www-authenticate']).toBe(`Bearer realm="heliograph"${hint}`);
          bodies[isPresented ? 'presented' : 'none'].add(answer.body);
        }
        for (const ofKind of Object.values(bodies)) {
          expect(ofKind.size).toBe(1);
          if (route.method !== 'HEAD') expect([...ofKind][0]).toContain('"code":"invalid_api_key"');
        }
      }
    });
  });

  test('is refused before anything else of the request is looked at', async () => {
    for (const route of routes.filter(({ body }) => body !== undefined)) {
      const response = await api.app.inject({
        method: route.method,
        url: `${pathWith(route, '\u0000')}?unknown=1`,
        headers: { 'content-type': 'application/json' },
        payload: '{"broken',
      });
      expect([route.name, response.statusCode]).toEqual([route.name, 401]);
    }
  });

  test('gets a code of its own when it is expired', async () => {
    const { authorization } = await addKey(api.database, WABA, new Date(Date.now() - 1000));
    await unchanged(async () => {
      for (const route of routes) {
        const answer = await ask(api, route, pathWith(route, UNKNOWN_ID), {
          authorization,
          body: bodyOf(route),
        });
        expect([route.name, answer.status]).toEqual([route.name, 401]);
        expect(answer.headers['www-authenticate']).toContain('error="invalid_token"');
        if (route.method !== 'HEAD') expect(JSON.parse(answer.body).error.code).toBe('expired_api_key');
      }
    });
  });
});

test('a key without the scope of a route gets a 403 that names it, whatever the request, and changes nothing', async () => {
  for (const scope of API_KEY_SCOPES) {
    const { id: keyId, authorization } = await addKey(api.database);
    await execute(api.database, 'update api_keys set scopes = :scopes where id = :keyId', {
      scopes: [scope],
      keyId,
    });
    await unchanged(async () => {
      for (const route of routes) {
        const { name, method, scopes = [] } = route;
        if (scopes.includes(scope)) continue;
        for (const id of [UNKNOWN_ID, ...own.ids.slice(0, 1)]) {
          const answer = await ask(api, route, pathWith(route, id), { authorization, body: bodyOf(route) });
          expect([name, scope, answer.status]).toEqual([name, scope, 403]);
          expect(answer.headers['www-authenticate']).toBe(
            `Bearer realm="heliograph", error="insufficient_scope", scope="${scopes.join(' ')}"`,
          );
          if (method === 'HEAD') continue;
          expect(JSON.parse(answer.body).error).toMatchObject({
            code: 'insufficient_scope',
            message: `The API key lacks the scope ${scopes.join(' or ')}.`,
          });
        }
      }
    });
    const allowed = routes.filter(({ method, scopes }) => method === 'GET' && scopes?.includes(scope));
    for (const route of allowed) {
      const { status } = await ask(api, route, pathWith(route, UNKNOWN_ID), { authorization });
      expect([route.name, scope, status]).not.toEqual([route.name, scope, 403]);
    }
  }
});

describe('what belongs to another WABA', () => {
  test('answers in a path byte for byte as what does not exist, in both directions, and is not changed', async () => {
    for (const [authorization, ids] of [
      [own.authorization, [...other.ids, ...IMPOSSIBLE_IDS]],
      [other.authorization, own.ids],
    ] as const) {
      await unchanged(async () => {
        for (const route of routes.filter(({ hasId }) => hasId)) {
          const given = { authorization, body: bodyOf(route) };
          const missing = await ask(api, route, pathWith(route, UNKNOWN_ID), given);
          expect([route.name, missing.status, missing.body]).toEqual([route.name, 404, missing.body]);
          for (const id of ids) {
            const answer = await ask(api, route, pathWith(route, id), given);
            expect([route.name, id, answer]).toEqual([route.name, id, missing]);
          }
        }
      });
    }
  });

  test('selects in a query what an unknown id selects', async () => {
    const { authorization } = own;
    await unchanged(async () => {
      for (const route of routes.filter(({ method }) => method === 'GET')) {
        for (const name of Object.keys(route.query)) {
          const ofQuery = async (value: string) => {
            const query = `?${name}=${encodeURIComponent(value)}`;
            const path = await ownPath(route);
            return withoutId(await ask(api, route, path, { authorization, query }), value);
          };
          const ofUnknown = askedOnce(ofQuery);
          for (const id of other.ids) {
            expect([route.name, name, id, await ofQuery(id)]).toEqual([
              ...[route.name, name, id],
              await ofUnknown(id),
            ]);
          }
        }
      }
    });
  });

  test('is in a body what an unknown id is', async () => {
    const { authorization } = own;
    const found: string[] = [];
    await unchanged(async () => {
      for (const route of routes) {
        for (const [member, fill] of idMembers(route.body)) {
          found.push(`${route.operationId} ${member}`);
          const ofBody = async (value: string) => {
            const body = { ...REFERENCES_NEED[route.operationId], ...fill(value) };
            return withoutId(await ask(api, route, await ownPath(route), { authorization, body }), value);
          };
          const ofUnknown = askedOnce(ofBody);
          for (const id of other.ids) {
            const answer = await ofBody(id);
            expect([route.name, id, answer]).toEqual([route.name, id, await ofUnknown(id)]);
            const isRefused = !SEARCHES.includes(route.operationId);
            expect([route.name, member, answer.status >= 400]).toEqual([route.name, member, isRefused]);
          }
        }
      }
    });
    expect(found).toEqual(
      expect.arrayContaining([
        'sendMessage phoneNumberId',
        'startReplay deliveryIds',
        'startReplay endpointId',
        'replayEvent endpointId',
        'createWebhookEndpoint phoneNumberIds',
        'updateWebhookEndpoint phoneNumberIds',
      ]),
    );
  });

  test('is not sent: a file of another WABA is an unknown file', async () => {
    const route = routes.find(({ operationId }) => operationId === 'sendMessage');
    const files = other.ids.filter((id) => id.startsWith('med_'));
    expect([route?.name, files.length > 0]).toEqual(['POST /api/external/messages', true]);
    if (route === undefined) return;
    await unchanged(async () => {
      for (const file of files) {
        const sendOf = async (id: string) => {
          const body = { phoneNumberId: NUMBER, to: '+12025550143', type: 'image', image: { id } };
          return withoutId(await ask(api, route, route.url, { authorization: own.authorization, body }), id);
        };
        const answer = await sendOf(file);
        expect([file, answer.status]).toEqual([file, 422]);
        expect([file, answer]).toEqual([file, await sendOf(unknownIdLike(file))]);
      }
    });
  });

  test('cannot be reached with a cursor of its own, nor with that of another list', async () => {
    const lists = routes.filter(({ method, query }) => method === 'GET' && query.cursor !== undefined);
    expect(lists.length).toBeGreaterThan(5);
    const cursors: { list: string; cursor: string }[] = [];
    for (const list of lists) {
      for (const { authorization, ids } of [other, own]) {
        const path = await pathOfOne(list, authorization, ids);
        const { body } = await ask(api, list, path, {
          authorization,
          query: isStream(list) ? '' : '?limit=1',
        });
        const nextCursor = isStream(list) ? /^id: (\S+)$/m.exec(body)?.[1] : JSON.parse(body).nextCursor;
        expect([list.name, nextCursor]).toEqual([list.name, expect.any(String)]);
        const isOwn = authorization === own.authorization;
        cursors.push({ list: isOwn ? list.name : 'foreign', cursor: String(nextCursor) });
      }
    }
    const { authorization } = own;
    for (const list of lists) {
      for (const { cursor } of cursors.filter((one) => one.list !== list.name)) {
        const query = `?${isStream(list) ? '' : 'limit=1&'}cursor=${encodeURIComponent(cursor)}`;
        const answer = await ask(api, list, await ownPath(list), { authorization, query });
        expect([list.name, answer.status, JSON.parse(answer.body).error.code]).toEqual([
          ...[list.name, 400],
          'invalid_cursor',
        ]);
      }
    }
  });

  test('is not answered to who knows its Idempotency-Key', async () => {
    const { authorization } = own;
    const writing = routes.filter(({ method }) => method !== 'GET' && method !== 'HEAD');
    for (const { operationId } of writing) {
      await execute(
        api.database,
        `insert into idempotency_keys (waba_id, operation, key, fingerprint, held_until, response_status, response_body)
         values (:otherWaba, :operationId, 'theirs', '', now() + interval '1 hour', 200, 'secret')`,
        { otherWaba: OTHER_WABA, operationId },
      );
    }
    const body = { phoneNumberId: OTHER_NUMBER, to: '+12025550143', type: 'text', text: { body: 'x' } };
    for (const route of writing.filter(({ scopes }) => scopes?.includes('send'))) {
      await unchanged(async () => {
        const withKey = (key: string) =>
          ask(api, route, pathWith(route, UNKNOWN_ID), {
            authorization,
            body,
            headers: { 'idempotency-key': key },
          });
        const answer = await withKey('theirs');
        expect([route.name, answer.status]).not.toEqual([route.name, 200]);
        expect([route.name, answer]).toEqual([route.name, await withKey('nobodys')]);
      });
    }
  });

  test('is in no list', async () => {
    for (const route of routes.filter(({ method }) => method === 'GET')) {
      const { body } = await ask(api, route, await ownPath(route), { authorization: own.authorization });
      for (const id of other.ids.filter((one) => !own.ids.includes(one))) {
        expect([route.name, body.includes(`"${id}"`)]).toEqual([route.name, false]);
      }
    }
  });
});

test('the same requests with the right key and ids get through and do change things, so the matrix can fail', async () => {
  const { authorization } = own;
  const before = await databaseDigest(api.database);
  // Deleting comes last, since the others need what it deletes.
  for (const route of routes.toSorted(
    (a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'),
  )) {
    if (route.method === 'GET') {
      const answer = await ask(api, route, await ownPath(route), { authorization });
      expect([route.name, answer.status]).toEqual([route.name, 200]);
    } else if (route.hasId) {
      await pathOfOne(route, authorization, own.ids);
    }
  }
  expect(await databaseDigest(api.database)).not.toEqual(before);
});

const ownPaths = new Map<string, string>();

/** The path of a route with an id of one's own in it. */
async function ownPath(route: MatrixRoute): Promise<string> {
  const known = ownPaths.get(route.url);
  if (known !== undefined) return known;
  const get = routes.find(({ name }) => name === `GET ${route.url}`);
  const path =
    get === undefined ? pathWith(route, own.ids[0] ?? '') : await pathOfOne(get, own.authorization, own.ids);
  ownPaths.set(route.url, path);
  return path;
}

/** The path of a route with the one of `ids` that it knows. */
async function pathOfOne(route: MatrixRoute, authorization: string, ids: string[]): Promise<string> {
  if (!route.hasId) return route.url;
  for (const id of ids) {
    const path = pathWith(route, id);
    const { status } = await ask(api, route, path, { authorization, body: bodyOf(route) });
    if (status !== 404 && status < 500) return path;
  }
  throw new Error(`no object of the account is known to ${route.name}: add one to account-objects.ts`);
}
