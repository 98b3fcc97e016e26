import { beforeAll, describe, expect, test } from 'vitest';
import { revokeApiKey } from '../../../src/keys/api-key-store.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import {
  addConversation,
  addKey,
  addMessage,
  apiOfFile,
  comparable,
  OTHER_NUMBER,
  OTHER_WABA,
  WABA,
} from './api-harness.ts';

/** What authorization-matrix.test.ts does not ask of every route alike. */

const api = apiOfFile();
let own: { conversation: string; text: string; outbound: string };
let foreign: string[];
let good: string;

beforeAll(async () => {
  const { database } = api;
  const conversation = await addConversation(database);
  const text = await addMessage(database, conversation);
  const outbound = await addMessage(database, conversation, { direction: 'outbound', type: 'image' });
  own = { conversation, text, outbound };
  const others = { wabaId: OTHER_WABA, phoneNumberId: OTHER_NUMBER };
  const otherConversation = await addConversation(database, others);
  foreign = [await addMessage(database, otherConversation, others)];
  good = (await addKey(database)).authorization;
});

test('every route that answers GET answers HEAD, except those of the facade, whose methods are those of upstream', () => {
  const own = api.routes.filter(({ url }) => !url.startsWith('/graph'));
  const found = own.flatMap(({ method, url }) => [method].flat().map((one) => `${one} ${url}`));
  // Of a page with and without a slash at the end, the hook is told of one only.
  const pathOf = (route: string) => route.split(' ')[1]?.replace(/(?<=.)\/$/, '');
  const paths = (method: string) =>
    new Set(found.filter((route) => route.startsWith(`${method} `)).map(pathOf));
  expect(paths('HEAD')).toEqual(paths('GET'));
});

test('a key is answered no more with the very next request after its revocation', async () => {
  const { id, authorization } = await addKey(api.database);
  expect((await api.app.inject({ url: '/me', headers: { authorization } })).statusCode).toBe(200);
  await revokeApiKey(api.database, WABA, id);
  expect((await api.app.inject({ url: '/me', headers: { authorization } })).statusCode).toBe(401);
  expect(await revokeApiKey(api.database, OTHER_WABA, id)).toBe(false);
});

test('of a message without inbound media it is said, of a foreign one nothing: byte for byte as of one that does not exist', async () => {
  const mediaOf = (id: string) =>
    api.app.inject({ url: `/api/external/messages/${id}/media`, headers: { authorization: good } });
  const missing = await mediaOf('123456789012345');
  expect(missing.statusCode).toBe(404);
  for (const id of [own.text, own.outbound]) {
    const response = await mediaOf(id);
    expect(response.statusCode).toBe(404);
    expect(response.json().error.message).toBe(`Message ${id} has no received media.`);
  }
  for (const id of foreign) expect(comparable(await mediaOf(id))).toEqual(comparable(missing));
});

test('lists hold what is one’s own and nothing else, whatever the filter', async () => {
  const headers = { authorization: good };
  const all = await api.app.inject({ url: '/api/external/conversations', headers });
  expect(all.json().data.map((one: { id: string }) => one.id)).toEqual([own.conversation]);
  const foreignNumber = await api.app.inject({
    url: `/api/external/conversations?phoneNumberId=${OTHER_NUMBER}`,
    headers,
  });
  expect(foreignNumber.body).toBe('{"data":[],"hasMore":false,"nextCursor":null}');
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
