import { expect, test } from 'vitest';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';
import {
  addKey,
  comparable,
  OTHER_WABA,
  startTestApi,
  type TestApi,
  testConfig,
  WABA,
} from '../api/api-harness.ts';
import { bodyOf, contactOf, eraseAll, messageOf, person, toolsFor, unzipped } from './erasure-world.ts';

const ASHA = person('Asha', '5511987650143');

async function caller(api: TestApi, scopes: readonly string[], wabaId = WABA) {
  const { id, authorization } = await addKey(api.database, wabaId);
  await execute(api.database, 'update api_keys set scopes = :scopes where id = :id', { scopes, id });
  return async (method: 'GET' | 'POST', url: string, payload?: object) =>
    await api.app.inject({ method, url, headers: { authorization }, ...(payload && { payload }) });
}

async function write(api: TestApi): Promise<void> {
  const image = { type: 'image', image: { id: '77', mime_type: 'image/jpeg' } };
  await takeIn(
    api.database,
    bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 1), messageOf(ASHA, 2, image)] }]),
  );
}

test('a key with the scope erases a customer; the report comes with it, its files are gone and say so', async () => {
  const api = await startTestApi();
  const { database } = api;
  await write(api);
  const [file] = await query<{ id: string }>(database, 'select message_id as id from media');
  const key = 'k'.repeat(32);
  await execute(
    database,
    `update media set state = 'stored', object_key = :key, served_type = 'image/jpeg', size_bytes = 1, sha256 = '00'`,
    { key },
  );
  const shown = await api.app.inject({ method: 'HEAD', url: `/received_media/${key}` });
  expect([shown.statusCode, shown.headers['cache-control']]).toEqual([200, 'private, no-cache']);
  const call = await caller(api, ['erase', 'read']);
  const asked = await call('POST', '/api/external/erasures', { customer: '+55 11 98765-0143' });
  expect([asked.statusCode, asked.json()]).toMatchObject([
    202,
    {
      kind: 'customer',
      state: 'requested',
      report: null,
      requestedBy: expect.stringMatching(/^API key \d+$/),
    },
  ]);
  const { id } = asked.json();
  expect(asked.headers.location).toBe(`/api/external/erasures/${id}`);
  const again = await call('POST', '/api/external/erasures', { customer: ASHA.waId });
  expect([again.statusCode, again.json().id]).toEqual([202, id]);
  expect((await call('GET', '/api/external/erasures')).json().data).toMatchObject([{ id }]);
  const tools = toolsFor(database, testConfig());
  await tools.objectStore.ensureBucket();
  await eraseAll(tools, id);
  const done = (await call('GET', `/api/external/erasures/${id}`)).json();
  expect(done).toMatchObject({
    state: 'done',
    counts: { messages: 2, contacts: 1 },
    report: { report: { erasureId: id, wabaId: WABA }, signature: { algorithm: 'ed25519' } },
  });
  expect(JSON.stringify(done)).not.toContain(ASHA.waId);
  const gone = await call('GET', `/api/external/messages/${file?.id}/media`);
  expect([gone.statusCode, gone.json().error.code]).toEqual([410, 'erased']);
  for (const headers of [{}, { 'if-none-match': shown.headers.etag }]) {
    const url = await api.app.inject({ url: `/received_media/${key}`, headers });
    expect([url.statusCode, url.json().error.code]).toEqual([410, 'erased']);
  }
  const unknown = await call('POST', '/api/external/erasures', { customer: ASHA.waId });
  expect([unknown.statusCode, unknown.json().error]).toMatchObject([422, { code: 'unknown_customer' }]);
  const other = await caller(api, ['erase', 'read'], OTHER_WABA);
  const missing = comparable(await other('GET', '/api/external/erasures/123456'));
  expect(comparable(await other('GET', `/api/external/erasures/${id}`))).toEqual(missing);
  expect((await other('GET', `/api/external/messages/${file?.id}/media`)).statusCode).toBe(404);
  expect((await other('GET', '/api/external/erasures')).json().data).toEqual([]);
});

test('neither erasing nor exporting is given by default', async () => {
  const api = await startTestApi();
  await write(api);
  const { authorization } = await addKey(api.database);
  for (const url of ['/api/external/erasures', '/api/external/exports']) {
    const payload = { customer: ASHA.waId };
    const { statusCode } = await api.app.inject({ method: 'POST', url, headers: { authorization }, payload });
    expect([url, statusCode]).toEqual([url, 403]);
  }
});

test('a request names one subject', async () => {
  const api = await startTestApi();
  const call = await caller(api, ['erase']);
  for (const payload of [
    {},
    { customer: '1', conversationId: '1' },
    { customer: '' },
    { conversationId: 'x' },
  ]) {
    expect([payload, (await call('POST', '/api/external/erasures', payload)).statusCode]).toEqual([
      payload,
      400,
    ]);
  }
  const unknown = await call('POST', '/api/external/erasures', { conversationId: '999999' });
  expect([unknown.statusCode, unknown.json().error]).toMatchObject([422, { code: 'unknown_conversation' }]);
});

test('an export holds the customer, the messages as upstream wrote them, and the files', async () => {
  const api = await startTestApi();
  const { database } = api;
  const { objectStore } = toolsFor(database, testConfig());
  await write(api);
  const key = 'f'.repeat(32);
  const bytes = Buffer.alloc(3_000_000, 'bytes of the file ');
  await objectStore.put(key, [bytes] as never, { contentType: 'image/jpeg' });
  await execute(
    database,
    `update media set state = 'stored', object_key = :key, file_name = '../Door photo.jpg', served_type = 'image/jpeg',
            size_bytes = :length, sha256 = '00'`,
    { key, length: bytes.length },
  );
  const call = await caller(api, ['export']);
  const response = await call('POST', '/api/external/exports', { customer: ASHA.waId });
  expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'application/zip']);
  expect(response.headers['content-disposition']).toMatch(/^attachment; filename="customer-\d+\.zip"$/);
  const files = unzipped(response.rawPayload);
  const [message] = await query<{ id: string }>(database, 'select message_id as id from media');
  const path = `files/${message?.id}-.._Door_photo.jpg`;
  expect([...files.keys()]).toEqual([
    ...['customer.json', 'conversations.json', 'messages.ndjson', 'payments.ndjson', path],
  ]);
  expect(files.get(path)?.equals(bytes)).toBe(true);
  expect(JSON.parse(String(files.get('customer.json')))).toMatchObject({ phone: ASHA.waId, name: ASHA.name });
  const lines = String(files.get('messages.ndjson')).trim().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { metaMessageId: ASHA.wamid(1), direction: 'inbound', message: { text: { body: ASHA.text } } },
    { metaMessageId: ASHA.wamid(2), file: path },
  ]);
  const audited = await query<{ target: string }>(
    database,
    `select target from audit_log where action = 'customer.exported'`,
  );
  expect(audited).toMatchObject([{ target: expect.stringMatching(/^customer \d+$/) }]);
});
