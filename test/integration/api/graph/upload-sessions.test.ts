import { request } from 'node:http';
import { Readable } from 'node:stream';
import { beforeEach, describe, expect, test } from 'vitest';
import { type Asked, askFacade } from './ask-facade.ts';
import { addFacadeKey } from './facade-key.ts';
import { apiOnRecordingUpstream, TOKEN, type UpstreamAccount } from './recording-upstream.ts';

const { api, upstream } = apiOnRecordingUpstream();
let own: UpstreamAccount;
let base: string;

const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(300_000, 7)]);
const BEGIN = `uploads?file_name=summer.png&file_length=${PNG.length}&file_type=image/png`;

beforeEach(async () => {
  own = await upstream.newAccount(api.database);
  upstream.calls.length = 0;
  upstream.reply(({ method, url }) => {
    if (url.includes('/app/uploads')) return { json: { id: 'upload:MTphdHRh?sig=ARZ1' } };
    if (url.endsWith('/subscribed_apps')) {
      return { json: { data: [{ whatsapp_business_api_data: { id: '7001', name: 'gateway' } }] } };
    }
    return { json: method === 'POST' ? { h: '4::aGFuZGxl' } : { id: 'upload:MTphdHRh', file_offset: 5 } };
  });
  base ??= await api.app.listen({ host: '127.0.0.1', port: 0 });
});

const ask = (path: string, asked: Asked = {}) => askFacade(api, path, { bearer: own.key, ...asked });

async function begin(bearer = own.key): Promise<string> {
  const { status, json } = await ask(`/v26.0/app/${BEGIN}`, { method: 'POST', bearer });
  expect(status).toBe(200);
  expect(json).toEqual({ id: expect.stringMatching(/^upload:[A-Za-z0-9_-]+$/) });
  return json.id;
}

type Sent = { offset?: string; length?: number | null; key?: string };

/** The bytes as clients send them; without a length they come in chunks. */
async function send(
  id: string,
  bytes: Buffer,
  { offset = '0', length = bytes.length, key = own.key }: Sent = {},
) {
  const headers = {
    authorization: `OAuth ${key}`,
    file_offset: offset,
    ...(length !== null && { 'content-length': String(length) }),
  };
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; json: { h?: string } }>();
  const outgoing = request(`${base}/graph/v26.0/${id}`, { method: 'POST', headers }, async (response) => {
    let text = '';
    for await (const chunk of response) text += chunk;
    resolve({ status: response.statusCode ?? 0, json: JSON.parse(text) });
  }).once('error', reject);
  Readable.from([bytes.subarray(0, 100_000), bytes.subarray(100_000)].filter(({ length: n }) => n > 0)).pipe(
    outgoing,
  );
  return await promise;
}

describe('resumable uploads', () => {
  test('begin for the app of the token, take the bytes as they come, and answer with the handle', async () => {
    const id = await begin();
    expect(upstream.calls.map(({ method, url }) => `${method} ${decodeURIComponent(url)}`)).toEqual([
      `POST /v26.0/app/uploads?file_name=summer.png&file_length=${PNG.length}&file_type=image/png`,
    ]);
    expect(await send(id, PNG)).toEqual({ status: 200, json: { h: '4::aGFuZGxl' } });
    const { url, authorization, offset, body } = upstream.calls.at(-1) ?? {};
    expect([url, authorization, offset]).toEqual(['/v26.0/upload:MTphdHRh?sig=ARZ1', `OAuth ${TOKEN}`, '0']);
    expect(body).toBe(PNG.toString());
  });

  test('go on from where they were interrupted, with a length and in chunks', async () => {
    const id = await begin();
    expect(await ask(`/v26.0/${id}`)).toMatchObject({ status: 200, json: { id, file_offset: 5 } });
    for (const length of [undefined, null]) {
      const rest = PNG.subarray(5);
      expect(
        await send(id, rest, { offset: '5', length: length ?? (length === null ? null : rest.length) }),
      ).toMatchObject({ status: 200 });
      expect(upstream.calls.at(-1)).toMatchObject({ offset: '5', body: rest.toString() });
    }
  });

  test('name the app that the WABA sends to, or app; no other', async () => {
    expect((await ask(`/v26.0/7001/${BEGIN}`, { method: 'POST' })).status).toBe(200);
    for (const app of ['7002', own.wabaId, own.number, 'me', '0']) {
      expect([app, (await ask(`/v26.0/${app}/${BEGIN}`, { method: 'POST' })).status]).toEqual([app, 403]);
    }
    expect(upstream.calls.filter(({ url }) => url.includes('/uploads'))).toHaveLength(1);
  });

  test.each([
    ['file_length=5', 'file_type'],
    ['file_length=5&file_type=image/webp', 'file_type'],
    ['file_type=image/png', 'file_length'],
    ['file_length=0&file_type=image/png', 'file_length'],
    ['file_length=-5&file_type=image/png', 'file_length'],
    ['file_length=5242881&file_type=image/png', 'file_length'],
    ['file_length=16777217&file_type=video/mp4', 'file_length'],
    ['file_length=104857601&file_type=application/pdf', 'file_length'],
  ])('are refused for %s without a call', async (query, name) => {
    const { status, json } = await ask(`/v26.0/app/uploads?${query}`, { method: 'POST' });
    expect([status, json.error.code]).toEqual([400, 100]);
    expect(json.error.error_data.details).toContain(name);
    expect(upstream.calls).toEqual([]);
  });

  test('take no other number of bytes than are left, and none at all for none', async () => {
    const id = await begin();
    const tooMany = Buffer.concat([PNG, Buffer.from('x')]);
    for (const [bytes, sent] of [
      [Buffer.alloc(0), { length: 0 }],
      [PNG.subarray(1), {}],
      [tooMany, {}],
      [PNG, { offset: '1' }],
      [PNG, { offset: String(PNG.length) }],
      [PNG, { offset: '-1' }],
      [PNG.subarray(1), { length: null }],
      [tooMany, { length: null }],
    ] as [Buffer, Sent][]) {
      const { status, json } = await send(id, bytes, sent);
      expect([bytes.length, sent, status, json]).toEqual([
        ...[bytes.length, sent, 400],
        expect.objectContaining({ error: expect.objectContaining({ code: 100 }) }),
      ]);
    }
  });

  test('of another WABA, and ids that were made up, are answered as what does not exist', async () => {
    const other = await upstream.newAccount(api.database);
    const id = await begin();
    upstream.calls.length = 0;
    for (const [foreign, key] of [
      [id, other.key],
      [`${id}A`, own.key],
      ['upload:MTphdHRh', own.key],
      ['upload:MTphdHRh?sig=ARZ1', own.key],
    ] as const) {
      expect(await send(foreign, PNG, { key })).toMatchObject({ status: 403, json: { error: { code: 10 } } });
      expect((await ask(`/v26.0/${foreign}`, { bearer: key })).status).toBe(403);
    }
    expect(upstream.calls).toEqual([]);
  });

  test('need the scope of what uses their handles', async () => {
    const id = await begin();
    const key = await addFacadeKey(api.database, own.wabaId, ['graph']);
    expect((await ask(`/v26.0/app/${BEGIN}`, { method: 'POST', bearer: key })).status).toBe(403);
    expect((await send(id, PNG, { key })).status).toBe(403);
    expect((await ask(`/v26.0/${id}`, { bearer: key })).status).toBe(403);
  });

  test('have the refusals of upstream as they are', async () => {
    const id = await begin();
    const error = { message: '(#100) The session has ended', type: 'OAuthException', code: 100 };
    upstream.reply(() => ({ status: 400, json: { error } }));
    expect(await send(id, PNG)).toEqual({ status: 400, json: { error } });
    expect(await ask(`/v26.0/app/${BEGIN}`, { method: 'POST' })).toMatchObject({
      status: 400,
      json: { error },
    });
    upstream.reply(() => 'hang up');
    expect((await send(id, PNG)).status).toBe(503);
    upstream.reply(() => ({ json: { success: true } }));
    expect((await ask(`/v26.0/app/${BEGIN}`, { method: 'POST' })).status).toBe(502);
  });
});
