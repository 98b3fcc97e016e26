import { beforeEach, describe, expect, test } from 'vitest';
import { revokeApiKey } from '../../../src/features/keys/api-key-store.ts';
import { SETUP_CALLBACK_PATH } from '../../../src/features/setup-links/set-up.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import {
  addConversation,
  addMessage,
  apiOfFile,
  comparable,
  freshKeyHolder,
  type KeyHolder,
} from './api-harness.ts';

/** What authorization-matrix.test.ts does not ask of every route alike. */

const api = apiOfFile();
let holder: KeyHolder;

beforeEach(async () => {
  holder = await freshKeyHolder(api.database);
});

const get = (url: string, { authorization } = holder) => api.app.inject({ url, headers: { authorization } });

/** A conversation with a message from the customer and one to the customer. */
async function addTalk({ wabaId, number: phoneNumberId }: KeyHolder) {
  const account = { wabaId, phoneNumberId };
  const conversation = await addConversation(api.database, account);
  const text = await addMessage(api.database, conversation, account);
  const sent = { ...account, direction: 'outbound', type: 'image' };
  return { conversation, text, outbound: await addMessage(api.database, conversation, sent) };
}

test('every route that answers GET answers HEAD, except those of the facade, whose methods are those of upstream, and the way back from the dialog', () => {
  // A HEAD request is no return: it would use up the code.
  const isOther = (url: string) => url.startsWith('/graph') || url === SETUP_CALLBACK_PATH;
  const own = api.routes.filter(({ url }) => !isOther(url));
  const found = own.flatMap(({ method, url }) => [method].flat().map((one) => `${one} ${url}`));
  // Of a page with and without a slash at the end, the hook is told of one only.
  const pathOf = (route: string) => route.split(' ')[1]?.replace(/(?<=.)\/$/, '');
  const paths = (method: string) =>
    new Set(found.filter((route) => route.startsWith(`${method} `)).map(pathOf));
  expect(paths('HEAD')).toEqual(paths('GET'));
});

test('a key is answered no more with the very next request after its revocation', async () => {
  const { wabaId, keyId } = holder;
  expect((await get('/me')).statusCode).toBe(200);
  const other = await freshKeyHolder(api.database);
  expect(await revokeApiKey(api.database, other.wabaId, keyId)).toBe(false);
  expect((await get('/me')).statusCode).toBe(200);
  expect(await revokeApiKey(api.database, wabaId, keyId)).toBe(true);
  expect((await get('/me')).statusCode).toBe(401);
});

test('of a message without inbound media it is said, of a foreign one nothing: byte for byte as of one that does not exist', async () => {
  const [own, foreign] = [await addTalk(holder), await addTalk(await freshKeyHolder(api.database))];
  const mediaOf = (id: string) => get(`/api/external/messages/${id}/media`);
  const missing = await mediaOf('123456789012345');
  expect(missing.statusCode).toBe(404);
  for (const id of [own.text, own.outbound]) {
    const response = await mediaOf(id);
    expect(response.statusCode).toBe(404);
    expect(response.json().error.message).toBe(`Message ${id} has no received media.`);
  }
  for (const id of [foreign.text, foreign.outbound])
    expect(comparable(await mediaOf(id))).toEqual(comparable(missing));
});

test('lists hold what is one’s own and nothing else, whatever the filter', async () => {
  const other = await freshKeyHolder(api.database);
  const own = await addTalk(holder);
  await addTalk(other);
  const all = await get('/api/external/conversations');
  expect(all.json().data.map((one: { id: string }) => one.id)).toEqual([own.conversation]);
  const foreignNumber = await get(`/api/external/conversations?phoneNumberId=${other.number}`);
  expect(foreignNumber.body).toBe('{"data":[],"hasMore":false,"nextCursor":null}');
});

describe('use of keys', () => {
  test('is noted at most once a minute, beside the request', async () => {
    const lastUse = async () => {
      const used = 'select last_used_at as at from api_keys where id = :keyId';
      const [row] = await query<{ at: Date | null }>(api.database, used, { keyId: holder.keyId });
      return row?.at ?? null;
    };
    await Promise.all(Array.from({ length: 10 }, () => get('/me')));
    await expect.poll(lastUse).not.toBeNull();
    const first = await lastUse();
    await get('/me');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await lastUse()).toEqual(first);
  });

  test('the connection test answers whatever Authorization says', async () => {
    for (const authorization of ['', 'Bearer x', 'Basic x', holder.authorization]) {
      const response = await get('/api/external/test', { ...holder, authorization });
      expect([response.statusCode, response.body]).toEqual([200, '{"status":"ok"}']);
    }
  });
});
