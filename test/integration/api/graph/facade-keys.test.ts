import { beforeEach, expect, test } from 'vitest';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { addKey } from '../api-harness.ts';
import { type Asked, askFacade } from './ask-facade.ts';
import { addFacadeKey } from './facade-key.ts';
import { apiOnRecordingUpstream, TOKEN, type UpstreamAccount } from './recording-upstream.ts';

/** Keys of the facade, in the header and in the query, as clients of the Cloud API send their tokens. */

const { api, upstream } = apiOnRecordingUpstream();
let own: UpstreamAccount;

beforeEach(async () => {
  own = await upstream.newAccount(api.database);
  upstream.calls.length = 0;
  upstream.reply(() => ({ json: { success: true } }));
});

const ask = (path: string, asked: Asked = {}) => askFacade(api, path, { bearer: own.key, ...asked });

test('a key without the scope, a wrong one and none get upstream’s errors about tokens', async () => {
  const { key: other } = await addKey(api.database, own.wabaId);
  const path = `/v26.0/${own.wabaId}`;
  expect(await ask(path, { bearer: other })).toMatchObject({ status: 403, json: { error: { code: 10 } } });
  for (const bearer of ['EAAG', `ck_${'0'.repeat(64)}`, null]) {
    expect(await ask(path, { bearer })).toMatchObject({ status: 401, json: { error: { code: 190 } } });
  }
  expect(upstream.calls).toEqual([]);
});

test('a key of the facade opens nothing else', async () => {
  const headers = { authorization: `Bearer ${own.key}` };
  const answer = await api.app.inject({ url: '/api/external/conversations', headers });
  expect(answer.statusCode).toBe(403);
});

test('a key in the query is refused unless it was made for that', async () => {
  const path = `/v14.0/${own.wabaId}/message_templates?access_token=`;
  const { status, json } = await ask(`${path}${own.key}`, { bearer: null });
  expect([status, json.error.code, json.error.message]).toEqual([
    ...[403, 10],
    expect.stringMatching(/only with the scope graph_query: .* "Authorization: Bearer"/),
  ]);
  // It is in the address, whatever the header says.
  expect((await ask(`${path}${own.key}`)).status).toBe(403);
  expect(upstream.calls).toEqual([]);
  const key = await addFacadeKey(api.database, own.wabaId, ['graph', 'graph_query']);
  expect((await ask(`${path}${key}`, { bearer: null })).status).toBe(200);
  const onlyQuery = await addFacadeKey(api.database, own.wabaId, ['graph_query']);
  expect((await ask(`${path}${onlyQuery}`, { bearer: null })).status).toBe(403);
});

test('a client that puts its key into the query finds it in the addresses of further pages, as upstream has it', async () => {
  const page = `${upstream.url}/v14.0/${own.wabaId}/message_templates?access_token=${encodeURIComponent(TOKEN)}&limit=25&after=QVFI`;
  upstream.reply(() => ({ json: { data: [], paging: { next: page } } }));
  const key = await addFacadeKey(api.database, own.wabaId, ['graph', 'graph_query']);
  const path = `/v14.0/${own.wabaId}/message_templates?access_token=${key}`;
  const { next } = (await ask(path, { bearer: null })).json.paging;
  expect(Object.fromEntries(new URL(next).searchParams)).toEqual({
    limit: '25',
    after: 'QVFI',
    access_token: key,
  });
  const { pathname, search } = new URL(next);
  const second = await ask(`${pathname.slice('/graph'.length)}${search}`, { bearer: null });
  expect([second.status, upstream.calls.at(-1)?.url]).toEqual([
    200,
    `/v14.0/${own.wabaId}/message_templates?limit=25&after=QVFI`,
  ]);
  const byHeader = await ask(`/v14.0/${own.wabaId}/message_templates`);
  expect(byHeader.text).not.toMatch(/ck_/);
});

test('a token is described to its owner alone: with its expiry, and an app that the WABA sends to', async () => {
  const apps = { data: [{ whatsapp_business_api_data: { id: '7001', name: 'gateway', link: '' } }] };
  upstream.reply(() => ({ json: apps }));
  const { status, json } = await ask(`/v17.0/debug_token?input_token=${own.key}`);
  expect([status, json.data]).toEqual([
    200,
    expect.objectContaining({ app_id: '7001', expires_at: 0, is_valid: true }),
  ]);
  const expire = `update api_keys set expires_at = now() + interval '1 day' where waba_id = :wabaId`;
  await execute(api.database, expire, { wabaId: own.wabaId });
  const { data } = (await ask(`/v17.0/debug_token?input_token=${own.key}`)).json;
  expect(data.expires_at * 1000).toBeGreaterThan(Date.now());
  const other = await addFacadeKey(api.database, own.wabaId);
  for (const input of [other, TOKEN, '', own.key.slice(0, -1)]) {
    const answer = await ask(`/v17.0/debug_token?input_token=${encodeURIComponent(input)}`);
    expect([answer.status, answer.json.error.code]).toEqual([403, 10]);
  }
});

test('a key in the query is taken like the header, and not passed on', async () => {
  const key = await addFacadeKey(api.database, own.wabaId, ['graph', 'graph_query']);
  const { status } = await ask(`/v26.0/${own.wabaId}/message_templates?access_token=${key}`, {
    bearer: null,
  });
  expect(status).toBe(200);
  expect(upstream.calls.at(-1)?.url).toBe(`/v26.0/${own.wabaId}/message_templates`);
});
