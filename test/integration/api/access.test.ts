import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { revokeApiKey } from '../../../src/database/api-keys.ts';
import { insertMedia } from '../../../src/database/media.ts';
import { execute, query } from '../../../src/database/sql.ts';
import { newApiKey } from '../../../src/domain/api-key-format.ts';
import { publicEventId } from '../../../src/domain/public-ids.ts';
import { dayOfUuidV7, uuidV7 } from '../../../src/domain/uuid-v7.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import {
  addConversation,
  addKey,
  addMessage,
  comparable,
  OTHER_NUMBER,
  OTHER_WABA,
  startTestApi,
  type TestApi,
  WABA,
} from './api-harness.ts';

/** Every route there is. A new one must be added to the right list, or this file fails. */
const WITHOUT_KEY = [
  'GET /',
  'GET /api/external/test',
  'GET /assets/product-placeholder.png',
  'GET /docs/errors',
  'GET /healthz',
  'GET /readyz',
  'GET /received_media/:token',
  'GET /upstream/webhook',
  'POST /upstream/webhook',
];
const WITH_KEY = [
  'GET /api/external/conversations',
  'GET /api/external/conversations/:id/messages',
  'GET /api/external/endpoint-alerts',
  'GET /api/external/events',
  'GET /api/external/events/:id',
  'GET /api/external/key',
  'GET /api/external/me',
  'GET /api/external/messages/:id',
  'GET /api/external/messages/:id/media',
  'GET /api/external/operations-url',
  'GET /api/external/replays',
  'GET /api/external/replays/:id',
  'GET /api/external/webhook-endpoints',
  'GET /api/external/webhook-endpoints/:id',
  'GET /api/external/webhook-endpoints/:id/statistics',
  'GET /me',
  'DELETE /api/external/operations-url',
  'DELETE /api/external/webhook-endpoints/:id',
  'PATCH /api/external/webhook-endpoints/:id',
  'POST /api/external/events/:id/replay',
  'POST /api/external/messages',
  'POST /api/external/operations-url/rotate-secret',
  'POST /api/external/replays',
  'POST /api/external/replays/:id/cancel',
  'POST /api/external/replays/:id/pause',
  'POST /api/external/replays/:id/resume',
  'POST /api/external/webhook-endpoints',
  'POST /api/external/webhook-endpoints/:id/enable',
  'POST /api/external/webhook-endpoints/:id/pause',
  'POST /api/external/webhook-endpoints/:id/rotate-secret',
  'POST /api/external/webhook-endpoints/:id/test',
  'PUT /api/external/operations-url',
];

let api: TestApi;
let close: () => Promise<void>;
let foreign: { conversation: string; media: string };
let own: { conversation: string; media: string; text: string; outbound: string };
let recovery: { endpoint: string; event: string; replay: string };
let good: string;

beforeAll(async () => {
  api = await startTestApi(undefined, (closeApi) => {
    close = closeApi;
  });
  const { database } = api;
  const conversation = await addConversation(database);
  const media = await addMessage(database, conversation, { type: 'image' });
  const text = await addMessage(database, conversation);
  const outbound = await addMessage(database, conversation, { direction: 'outbound', type: 'image' });
  own = { conversation, media, text, outbound };
  const theirs = { wabaId: OTHER_WABA, phoneNumberId: OTHER_NUMBER };
  const theirConversation = await addConversation(database, theirs);
  foreign = {
    conversation: theirConversation,
    media: await addMessage(database, theirConversation, { ...theirs, type: 'image' }),
  };
  const file = {
    mediaType: 'image',
    upstreamMediaId: '1',
    mimeType: 'image/jpeg',
    sha256: null,
    url: null,
    caption: null,
    fileName: null,
  };
  await database.transaction((trx) =>
    insertMedia(trx, [
      { wabaId: own.media === '' ? '' : '900000000000101', messageId: own.media, ...file },
      { wabaId: OTHER_WABA, messageId: foreign.media, ...file },
    ]),
  );
  recovery = await addRecovery();
  good = (await addKey(database)).authorization;
});
afterAll(() => close());

/** An endpoint, an event and a replay of this WABA. */
async function addRecovery(): Promise<typeof recovery> {
  const { database } = api;
  const { id: endpoint } = await addEndpoint(database, WABA, 'https://shop.example/hook');
  const uuid = uuidV7(Date.now());
  await execute(
    database,
    `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence)
     select cast(? as date), cast(? as uuid), waba_id, tenant_id, '1', 'test', 'e', 'e', 1 from wabas where waba_id = ?`,
    [dayOfUuidV7(uuid), uuid, WABA],
  );
  const [replay] = await query<{ id: string }>(
    database,
    `insert into replays (waba_id, selection, state, total, cursor, requested_by)
     values (?, ?, 'done', 0, '{"toId":"","endpoints":[],"skipped":0}', 'test') returning id`,
    [
      WABA,
      '{"deliveryIds":null,"endpointId":null,"from":null,"to":"2026-01-01T00:00:00Z","eventTypes":null,"states":null}',
    ],
  );
  return { endpoint, event: publicEventId(uuid), replay: replay?.id ?? '' };
}

/** All routes that need a key, with ids that this WABA's key may read. */
function securedRequests() {
  return WITH_KEY.map((route) => {
    const [method = '', url = ''] = route.split(' ');
    return { method: method as 'GET', url: url.replace(':id', ownIdFor(url)) };
  });
}

function ownIdFor(url: string): string {
  if (url.includes('/events/')) return recovery.event;
  if (url.includes('/replays/')) return recovery.replay;
  if (url.includes('/webhook-endpoints/')) return recovery.endpoint;
  return url.includes('messages/') ? own.media : own.conversation;
}

test('the routes are exactly those that are listed here, so none is forgotten by the tests of access', () => {
  const found = api.routes.flatMap(({ method, url }) => [method].flat().map((one) => `${one} ${url}`));
  const gets = found.filter((route) => route.startsWith('GET '));
  expect(new Set(found.filter((route) => !route.startsWith('HEAD ')))).toEqual(
    new Set([...WITHOUT_KEY, ...WITH_KEY]),
  );
  const heads = found
    .filter((route) => route.startsWith('HEAD '))
    .map((route) => route.replace('HEAD', 'GET'));
  expect(new Set(heads)).toEqual(new Set(gets));
});

describe('every route that needs a key', () => {
  test('answers a good key', async () => {
    for (const { method, url } of securedRequests().filter((request) => request.method === 'GET')) {
      const response = await api.app.inject({ method, url, headers: { authorization: good } });
      expect([url, response.statusCode]).toEqual([url, 200]);
    }
  });

  test('refuses every kind of wrong key with one and the same 401', async () => {
    const revoked = await addKey(api.database);
    expect(await revokeApiKey(api.database, '900000000000101', revoked.id)).toBe(true);
    const expiredAndRevoked = await addKey(api.database, undefined, new Date(Date.now() - 1000));
    await revokeApiKey(api.database, '900000000000101', expiredAndRevoked.id);
    const key = good.slice('Bearer '.length);
    const presented = [
      'Bearer nonsense',
      `Bearer ${newApiKey()}`,
      `Bearer ${key.toUpperCase()}`,
      `Bearer ${key}0`,
      `Bearer ${key.slice(0, -1)}`,
      `Bearer ck_${'g'.repeat(64)}`,
      `Bearer  ${newApiKey()}`,
      `Bearer ${'x'.repeat(9000)}`,
      revoked.authorization,
      expiredAndRevoked.authorization,
    ];
    const notPresented = [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      'Basic dXNlcjpwYXNz',
      key,
      `Token ${key}`,
      `${good} x`,
    ];
    for (const { method, url } of securedRequests()) {
      const bodies = new Set<string>();
      for (const authorization of [...presented, ...notPresented]) {
        const headers = authorization === undefined ? {} : { authorization };
        const response = await api.app.inject({ method, url, headers });
        const hint = presented.includes(authorization ?? '') ? ', error="invalid_token"' : '';
        expect([authorization, response.statusCode]).toEqual([authorization, 401]);
        expect(response.headers['www-authenticate']).toBe(`Bearer realm="heliograph"${hint}`);
        bodies.add(comparable(response).body);
      }
      expect(bodies.size).toBe(1);
      expect([...bodies][0]).toContain('"code":"invalid_api_key"');
    }
  });

  test('refuses an expired key with a code of its own', async () => {
    const expired = await addKey(api.database, undefined, new Date(Date.now() - 1000));
    for (const { method, url } of securedRequests()) {
      const { authorization } = expired;
      const response = await api.app.inject({ method, url, headers: { authorization } });
      expect(response.statusCode).toBe(401);
      expect(response.json().error.code).toBe('expired_api_key');
    }
  });

  test('stops answering a key with the very next request after its revocation', async () => {
    const { id, authorization } = await addKey(api.database);
    expect((await api.app.inject({ url: '/me', headers: { authorization } })).statusCode).toBe(200);
    await revokeApiKey(api.database, '900000000000101', id);
    expect((await api.app.inject({ url: '/me', headers: { authorization } })).statusCode).toBe(401);
    expect(await revokeApiKey(api.database, OTHER_WABA, id)).toBe(false);
  });
});

describe('what belongs to another WABA', () => {
  test('answers byte for byte as what does not exist, as does every id that cannot be one', async () => {
    const odd = [
      '0',
      '-1',
      '1.0',
      '1e3',
      '0x1',
      `0${own.media}`,
      '9223372036854775807',
      '9223372036854775808',
      '99999999999999999999999',
      '9'.repeat(5000),
      'abc',
      '%00',
      '1%00',
      '%20',
      '%F0%9F%92%A9',
      "1'--",
      '%D9%A1',
      'null',
      '__proto__',
    ];
    const routes = [
      {
        path: (id: string) => `/api/external/conversations/${id}/messages`,
        ids: [foreign.conversation, ...odd],
      },
      {
        path: (id: string) => `/api/external/messages/${id}/media`,
        ids: [foreign.media, own.text, own.outbound, ...odd],
      },
    ];
    for (const { path, ids } of routes) {
      const missing = await api.app.inject({
        url: path('123456789012345'),
        headers: { authorization: good },
      });
      expect(missing.statusCode).toBe(404);
      for (const id of ids) {
        const response = await api.app.inject({ url: path(id), headers: { authorization: good } });
        expect([id, comparable(response)]).toEqual([id, comparable(missing)]);
      }
    }
  });

  test('is not in lists, whatever the filter', async () => {
    const headers = { authorization: good };
    const all = await api.app.inject({ url: '/api/external/conversations', headers });
    expect(all.json().data.map((one: { id: string }) => one.id)).toEqual([own.conversation]);
    const foreignNumber = await api.app.inject({
      url: `/api/external/conversations?phoneNumberId=${OTHER_NUMBER}`,
      headers,
    });
    const unknownNumber = await api.app.inject({
      url: '/api/external/conversations?phoneNumberId=1',
      headers,
    });
    expect(foreignNumber.body).toBe('{"data":[],"hasMore":false,"nextCursor":null}');
    expect(comparable(foreignNumber)).toEqual(comparable(unknownNumber));
  });

  test('cannot be reached with a cursor of one’s own, nor one’s own with a foreign cursor', async () => {
    const { database, app } = api;
    const theirs = { wabaId: OTHER_WABA, phoneNumberId: OTHER_NUMBER };
    await addConversation(database, theirs);
    const key = await addKey(database, OTHER_WABA);
    const page = await app.inject({
      url: '/api/external/conversations?limit=1',
      headers: { authorization: key.authorization },
    });
    const cursor: string = page.json().nextCursor;
    expect(cursor).not.toBeNull();
    const response = await app.inject({
      url: `/api/external/conversations?limit=1&cursor=${cursor}`,
      headers: { authorization: good },
    });
    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatchObject({ code: 'invalid_cursor', param: 'cursor' });
  });
});

describe('use of keys', () => {
  test('is noted at most once a minute, beside the request', async () => {
    const { id, authorization } = await addKey(api.database);
    const lastUse = async () =>
      (
        await query<{ at: Date | null }>(
          api.database,
          'select last_used_at as at from api_keys where id = ?',
          [id],
        )
      )[0]?.at ?? null;
    await Promise.all(
      Array.from({ length: 10 }, () => api.app.inject({ url: '/me', headers: { authorization } })),
    );
    await expect.poll(lastUse).not.toBeNull();
    const first = await lastUse();
    await api.app.inject({ url: '/me', headers: { authorization } });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await lastUse()).toEqual(first);
  });

  test('the connection test answers whatever Authorization says', async () => {
    for (const authorization of ['', 'Bearer x', 'Basic x', good]) {
      const response = await api.app.inject({ url: '/api/external/test', headers: { authorization } });
      expect([response.statusCode, response.body]).toEqual([200, '{"status":"ok"}']);
    }
  });
});
