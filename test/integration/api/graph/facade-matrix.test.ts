import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALLOWED_CALLS } from '../../../../src/api/graph/allowed-calls.ts';
import { FACADE_ROOTS } from '../../../../src/api/graph/facade-paths.ts';
import { facadeMediaId, uploadUuidOf } from '../../../../src/api/graph/media-ids.ts';
import { API_KEY_SCOPES, newApiKey } from '../../../../src/features/keys/api-key.ts';
import { revokeApiKey } from '../../../../src/features/keys/api-key-store.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { databaseDigest, objectIdsOf } from '../../../support/database-digest.ts';
import { addAccountObjects, spreadIds } from '../account-objects.ts';
import { addKey, comparable, startTestApi } from '../api-harness.ts';
import {
  IMPOSSIBLE_IDS,
  isOfFacade,
  type MatrixRoute,
  matrixRoutes,
  unknownIdLike,
} from '../route-matrix.ts';
import { startRecordingUpstream, type UpstreamAccount } from './recording-upstream.ts';

/**
 * Every route of the facade × every kind of key and of object that must not get through, as `authorization-matrix` has
 * it for the External API. The calls behind a route are those that are passed on, and some that are not.
 */

type Account = UpstreamAccount & { ids: string[] };
type Call = { name: string; method: MatrixRoute['method']; url: string };
type Answer = Awaited<ReturnType<typeof ask>>;
type Given = { authorization?: string; body?: unknown; headers?: Record<string, string> };

const UNKNOWN_ID = '123456789012345';
const SEND = { messaging_product: 'whatsapp', to: '12025550143', type: 'text', text: { body: 'x' } };

let api: Awaited<ReturnType<typeof startTestApi>>;
let upstream: Awaited<ReturnType<typeof startRecordingUpstream>>;
let routes: MatrixRoute[];
let own: Account;
let other: Account;

beforeAll(async () => {
  upstream = await startRecordingUpstream();
  api = await startTestApi(upstream.overrides, afterAll);
  await spreadIds(api.database);
  routes = matrixRoutes(api.routes).filter(({ url }) => isOfFacade(url));
  own = await newAccount();
  other = await newAccount();
});

async function newAccount(): Promise<Account> {
  const { database } = api;
  const account = await upstream.newAccount(database);
  const { wabaId, number, template, flow, key } = account;
  await addAccountObjects(database, { wabaId, phoneNumberId: number });
  const authorization = `Bearer ${key}`;
  const upload = await ask({ method: 'POST', url: `/graph/v26.0/${number}/media` }, { authorization });
  expect(upload.status).toBe(200);
  // What is still being fetched is waited for.
  await execute(
    database,
    `update media set state = 'stored', object_key = 'media/' || message_id, size_bytes = 1 where waba_id = :wabaId`,
    { wabaId },
  );
  const ids = [...(await objectIdsOf(database, wabaId)), template, flow, wabaId, number];
  const files = ids.filter((id) => id.startsWith('med_')).flatMap((id) => uploadUuidOf(id) ?? []);
  return { ...account, ids: [...new Set([...ids, ...files.map(facadeMediaId)])] };
}

/** Ids of the facade stand for such as nothing has, too. */
function unknownLike(id: string): string {
  const uuid = /^\d{37}$/.test(id) ? uploadUuidOf(id) : null;
  return uuid === null ? unknownIdLike(id) : facadeMediaId(unknownIdLike(uuid));
}

const bearer = ({ key }: Account) => ({ authorization: `Bearer ${key}` });

/** A file as its form; every other call takes JSON. */
function fileForm() {
  const head = 'content-disposition: form-data; name="file"; filename="a.txt"\r\ncontent-type: text/plain';
  return {
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
    payload: `--x\r\n${head}\r\n\r\nhello\r\n--x--\r\n`,
  };
}

async function ask({ method, url }: Omit<Call, 'name'>, { authorization, body, headers }: Given = {}) {
  const isUpload = method === 'POST' && /\/media$/.test(url);
  const isSend = /\/(marketing_)?messages$/.test(url);
  const query = url.endsWith('/uploads') ? '?file_length=2&file_type=image/png&file_name=a.png' : '';
  const isThread = url.endsWith('/thread_control');
  const json = body ?? (isSend ? SEND : isThread ? { to: '12025550143', action: 'take' } : {});
  const { headers: type, payload } = isUpload
    ? fileForm()
    : { headers: { 'content-type': 'application/json' }, payload: JSON.stringify(json) };
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const response = await api.app.inject({
    method,
    url: `${url}${query}`,
    headers: { ...headers, ...(authorization !== undefined && { authorization }), ...(hasBody && type) },
    ...(hasBody && { payload }),
  });
  const answer = comparable(response);
  const lasting = Object.entries(answer.headers).filter(([name]) => !/^(x-)?ratelimit/.test(name));
  return { ...answer, headers: Object.fromEntries(lasting) };
}

/** The one answer to all that the facade does not pass on. */
const NOT_ALLOWED = {
  message: '(#10) Application does not have permission for this action',
  type: 'OAuthException',
  code: 10,
  error_data: {
    messaging_product: 'whatsapp',
    details: expect.stringMatching(
      /^(The WABA of the API key has no object|Heliograph does not pass this call)/,
    ),
  },
  fbtrace_id: 'ID',
};

/** Such a route passes nothing on: it refuses in the form of the others. */
const refusesAll = (url: string) => url === '/graph' || url.endsWith('*');

/** Messages, their conversations and files need `graph`, reading either scope, changes of the WABA's objects `graph_manage`. */
function scopesOf(method: string, url: string): string[] {
  if (/\/(messages|marketing_messages|thread_control|media|uploaded_media\/:id|:id\/calls)$/.test(url))
    return ['graph'];
  // With these, the handler decides: an uploaded file, or an object.
  if (/\/(uploads|:id\(\^upload:\.\+\$\))$/.test(url)) return ['graph_manage'];
  const isEither = ['GET', 'HEAD'].includes(method) || (method === 'DELETE' && url.endsWith('/:id'));
  return isEither || refusesAll(url) ? ['graph', 'graph_manage'] : ['graph_manage'];
}

const errorOf = (answer: { body: string }) => JSON.parse(answer.body).error;

const NOT_PASSED = ['register', 'deregister', 'assigned_users', 'message_history', '__proto__'];
const EDGES = [...new Set([...Object.values(ALLOWED_CALLS).flatMap(Object.keys), ...NOT_PASSED])].filter(
  (edge) => edge !== '' && !edge.includes('/'),
);
const SOME_EDGES = ['message_templates', 'assets'];
const PARTS = ['message_qrdls/ABC123', 'flows/x'];
const FURTHER = ['flows/a/b', ''];

const SESSION = ':id(^upload:.+$)';

/** The calls that lead to a route, about an object. */
function callsOf({ name, method, url }: MatrixRoute, id: string, edges = EDGES): Call[] {
  const root = `/graph${url.startsWith(FACADE_ROOTS[0]) ? '/v26.0' : ''}`;
  const path = url
    .replace(FACADE_ROOTS[0], '/graph/v26.0')
    .replace(SESSION, 'upload::id')
    .replace(':id', encodeURIComponent(id));
  const call = (to: string): Call => ({ name: `${name} as ${to}`, method, url: to });
  if (url.endsWith('*')) return FURTHER.map((rest) => call(`${root}/${encodeURIComponent(id)}/${rest}`));
  if (url.endsWith('/:part')) return PARTS.map((part) => call(path.replace(':edge/:part', part)));
  if (url.endsWith('/:edge')) return edges.map((edge) => call(path.replace(':edge', edge)));
  return [call(path)];
}

/** Runs requests that must not change anything, here or upstream, and that tell upstream of no foreign object. */
async function unchanged(requests: () => Promise<void>, account = own): Promise<void> {
  const before = await databaseDigest(api.database);
  upstream.calls.length = 0;
  await requests();
  expect(await databaseDigest(api.database)).toEqual(before);
  const lists = new RegExp(
    `^/v26\\.0/${account.wabaId}/(subscribed_apps|(message_templates|flows)\\?fields=id&limit=500)$`,
  );
  const told = upstream.calls.filter(({ method, url }) => method !== 'GET' || !lists.test(url));
  expect(told).toEqual([]);
}

test('the matrix knows every route, with a version in its path and without', () => {
  for (const { name, method, url, scopes } of routes) {
    expect([name, scopes]).toEqual([name, scopesOf(method, url)]);
  }
  const paths = routes.map(({ method, url }) => `${method} ${url}`);
  const versioned = paths.filter((path) => path.includes(':version'));
  expect(versioned.length).toBeGreaterThan(12);
  const plain = versioned.map((path) => path.replace(FACADE_ROOTS[0], FACADE_ROOTS[1]));
  expect(paths).toEqual(expect.arrayContaining(plain));
});

describe('a key that is none', () => {
  test('gets upstream’s error about tokens from every route, and changes nothing', async () => {
    const revoked = await addKey(api.database, own.wabaId);
    await revokeApiKey(api.database, own.wabaId, revoked.id);
    const presented = ['nonsense', newApiKey(), own.key.toUpperCase(), own.key.slice(0, -1), revoked.key].map(
      (token) => `Bearer ${token}`,
    );
    const notPresented = [undefined, '', 'Bearer', 'Basic dXNlcjpwYXNz', own.key, `Bearer ${own.key} x`];
    await unchanged(async () => {
      for (const call of routes.flatMap((route) => callsOf(route, own.number, ['flows', 'register']))) {
        for (const authorization of [...presented, ...notPresented]) {
          const answer = await ask(call, authorization === undefined ? {} : { authorization });
          expect([call.name, authorization, answer.status]).toEqual([call.name, authorization, 401]);
          const isPresented = presented.includes(authorization ?? '');
          const hint = isPresented ? ', error="invalid_token"' : '';
          expect(answer.headers['www-authenticate']).toBe(`Bearer realm="heliograph"${hint}`);
          if (call.method === 'HEAD') continue;
          const message = isPresented
            ? 'The request carries no valid API key.'
            : 'The request has no header "Authorization: Bearer <API key>".';
          expect(errorOf(answer)).toEqual({
            message: `Invalid OAuth access token - ${message}`,
            type: 'OAuthException',
            code: 190,
            fbtrace_id: 'ID',
          });
        }
      }
    });
  });

  test('is refused before anything else of the request is looked at, in the query too', async () => {
    await unchanged(async () => {
      for (const call of routes.flatMap((route) => callsOf(route, '\u0000', ['flows']))) {
        for (const query of [
          '',
          '?unknown=1',
          `?access_token=${newApiKey()}`,
          '?access_token=a&access_token=b',
        ]) {
          const response = await api.app.inject({
            method: call.method,
            url: `${call.url}${query}`,
            ...(call.method !== 'GET' &&
              call.method !== 'HEAD' && {
                headers: { 'content-type': 'application/json' },
                payload: '{"broken',
              }),
          });
          expect([call.name, query, response.statusCode]).toEqual([call.name, query, 401]);
        }
      }
    });
  });

  test('gets a subcode of its own when it is expired', async () => {
    const { authorization } = await addKey(api.database, own.wabaId, new Date(Date.now() - 1000));
    await unchanged(async () => {
      for (const call of routes.flatMap((route) => callsOf(route, own.number, ['flows']))) {
        const answer = await ask(call, { authorization });
        expect([call.name, answer.status]).toEqual([call.name, 401]);
        if (call.method !== 'HEAD') expect(errorOf(answer)).toMatchObject({ code: 190, error_subcode: 463 });
      }
    });
  });

  test('with every scope but those of the facade gets a 403 that names it, whatever it asks for', async () => {
    const { id, authorization } = await addKey(api.database, own.wabaId);
    const scopes = API_KEY_SCOPES.filter((scope) => !['graph', 'graph_manage'].includes(scope));
    await execute(api.database, 'update api_keys set scopes = :scopes where id = :id', { scopes, id });
    await unchanged(async () => {
      for (const object of [UNKNOWN_ID, own.number, own.wabaId, own.flow, other.number]) {
        const calls = routes.flatMap((route) =>
          callsOf(route, object, ['flows', 'register']).map((call) => ({
            ...call,
            // A slash at the end leads to the route of the object, if it has the method.
            wanted:
              call.url.endsWith('/') && call.method === 'POST' ? ['graph_manage'] : (route.scopes ?? []),
          })),
        );
        for (const { wanted, ...call } of calls) {
          const answer = await ask(call, { authorization });
          expect([call.name, answer.status]).toEqual([call.name, 403]);
          expect(answer.headers['www-authenticate']).toBe(
            `Bearer realm="heliograph", error="insufficient_scope", scope="${wanted.join(' ')}"`,
          );
          if (call.method === 'HEAD') continue;
          const message = `(#10) The API key lacks the scope ${wanted.join(' or ')}.`;
          expect(errorOf(answer)).toEqual({ message, type: 'OAuthException', code: 10, fbtrace_id: 'ID' });
        }
      }
    });
  });
});

describe('what belongs to another WABA', () => {
  test('answers in a path byte for byte as what does not exist, in both directions; upstream never hears of it', async () => {
    for (const [account, foreign] of [
      [own, other],
      [other, own],
    ] as const) {
      const main = [foreign.wabaId, foreign.number, foreign.template, foreign.flow];
      await unchanged(async () => {
        for (const route of routes) {
          const missing = new Map<string[], Answer[]>([
            [EDGES, []],
            [SOME_EDGES, []],
          ]);
          for (const [edges, answers] of missing) {
            for (const call of callsOf(route, UNKNOWN_ID, edges)) {
              const answer = await ask(call, bearer(account));
              expect([call.name, answer.status]).toEqual([call.name, 403]);
              if (call.method !== 'HEAD') expect(errorOf(answer)).toMatchObject(NOT_ALLOWED);
              answers.push(answer);
            }
          }
          // Both kinds of root have the same routes: what is not an object of upstream is tried with one of them.
          const others = route.url.startsWith(FACADE_ROOTS[0]) ? [...foreign.ids, ...IMPOSSIBLE_IDS] : [];
          for (const id of new Set([...main, ...others])) {
            const edges = main.includes(id) ? EDGES : SOME_EDGES;
            for (const [index, call] of callsOf(route, id, edges).entries()) {
              const answer = await ask(call, bearer(account));
              expect([call.name, answer]).toEqual([call.name, missing.get(edges)?.[index]]);
            }
          }
        }
      }, account);
    }
  });

  test('is in a body what an unknown id is', async () => {
    const files = other.ids.filter((id) => /^(med_|\d{37}$)/.test(id));
    expect(files.length).toBeGreaterThan(3);
    const bodies: [string, string, (id: string) => unknown][] = [
      ...files.map((id): (typeof bodies)[number] => [
        ...([`${own.number}/messages`, id] as const),
        (file) => ({ ...SEND, type: 'image', text: undefined, image: { id: file } }),
      ]),
      [`${own.wabaId}/flows`, other.flow, (id) => ({ name: 'f', clone_flow_id: id })],
    ];
    await unchanged(async () => {
      for (const [path, id, body] of bodies) {
        for (const root of ['/graph/v26.0', '/graph']) {
          const call = { method: 'POST', url: `${root}/${path}` } as const;
          const answer = await ask(call, { ...bearer(own), body: body(id) });
          expect([path, id, answer.status]).toEqual([path, id, 400]);
          const unknown = await ask(call, { ...bearer(own), body: body(unknownLike(id)) });
          expect([path, id, answer]).toEqual([path, id, unknown]);
        }
      }
    });
  });

  test('is not answered to who knows its Idempotency-Key', async () => {
    for (const upstreamPath of ['messages', 'marketing_messages']) {
      await execute(
        api.database,
        `insert into idempotency_keys (waba_id, operation, key, fingerprint, held_until, response_status, response_body)
         values (:wabaId, :number, 'theirs', '', now() + interval '1 hour', 200, 'secret')`,
        { wabaId: other.wabaId, number: `graph/${own.number}/${upstreamPath}` },
      );
    }
    const body = { ...SEND, type: 'image', text: undefined, image: { id: `med_${'0'.repeat(32)}` } };
    await unchanged(async () => {
      for (const { method, url } of routes.filter((route) => /messages$/.test(route.url))) {
        const call = { method, url: url.replace(FACADE_ROOTS[0], '/graph/v26.0').replace(':id', own.number) };
        const withKey = (key: string) =>
          ask(call, { ...bearer(own), body, headers: { 'idempotency-key': key } });
        const answer = await withKey('theirs');
        expect([url, answer.status]).toEqual([url, 400]);
        expect([url, answer]).toEqual([url, await withKey('nobodys')]);
      }
    });
  });
});

test('the same calls with the right key and objects get through, so the matrix can fail', async () => {
  const before = await databaseDigest(api.database);
  upstream.calls.length = 0;
  const objects = { waba: own.wabaId, number: own.number, template: own.template, flow: own.flow };
  const passedEdges = EDGES.filter((edge) => !NOT_PASSED.includes(edge));
  // Deleting comes last, since the others need what it deletes.
  const sorted = routes.toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'));
  upstream.reply(({ method, url }) => {
    if (url.includes('/app/uploads')) return { json: { id: 'upload:abc?sig=def' } };
    return { json: method === 'POST' && url.includes('/upload:') ? { h: '4::handle' } : { success: true } };
  });
  const begun = await ask({ method: 'POST', url: '/graph/app/uploads' }, bearer(own));
  const session = JSON.parse(begun.body).id.slice('upload:'.length);
  const isSend = ({ url }: MatrixRoute) => /messages$/.test(url);
  const getsThrough = async (route: MatrixRoute) => {
    const ids = route.url.includes(':edge') ? Object.values(objects) : [...own.ids, 'app', session];
    const calls = ids.flatMap((id) => callsOf(route, id, passedEdges));
    const through: string[] = [];
    for (const call of calls) {
      if (isSend(route) && through.length > 0) break;
      const { status } = await ask(call, bearer(own));
      const isRefused = [400, 403].includes(status);
      expect([call.name, status]).toEqual([call.name, isRefused ? status : 200]);
      if (status === 200) through.push(call.url);
    }
    // Nothing that has a further part in its path takes a POST.
    const isRoute = route.method !== 'POST' || !route.url.endsWith('/:part');
    expect([route.name, through.length > 0]).toEqual([route.name, isRoute]);
  };
  // Each waits ten seconds for an outcome, which no worker brings here.
  await Promise.all(sorted.filter(isSend).map(getsThrough));
  for (const route of sorted.filter((one) => !isSend(one) && !refusesAll(one.url))) await getsThrough(route);
  expect(await databaseDigest(api.database)).not.toEqual(before);
  const passed = new Set(upstream.calls.map(({ method, url }) => `${method} ${url.split('?', 1)[0]}`));
  for (const [object, edges] of Object.entries(ALLOWED_CALLS)) {
    const id = objects[object as keyof typeof objects];
    for (const [edge, { methods }] of Object.entries(edges)) {
      const path = [id, ...(edge === '' ? [] : [edge.replace('*', 'ABC123')])].join('/');
      for (const method of methods) expect(passed).toContain(`${method} /v26.0/${path}`);
    }
  }
});
