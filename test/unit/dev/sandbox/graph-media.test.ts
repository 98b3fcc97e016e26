import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { call, graph, startSandbox } from './sandbox-harness.ts';

const FIXTURES = new URL('../../../fixtures/upstream/', import.meta.url);

async function fixture(name: string): Promise<{ status: number; body: Record<string, unknown> }> {
  return JSON.parse(await readFile(new URL(name, FIXTURES), 'utf8'));
}

/** Every media object with an id in a fixture body. */
function mediaIn(value: unknown): { id: string; sha256: string; mime_type: string }[] {
  if (typeof value !== 'object' || value === null) {
    return [];
  }
  const found = 'id' in value && 'sha256' in value && 'mime_type' in value ? [value as never] : [];
  return [...found, ...Object.values(value).flatMap(mediaIn)];
}

describe('media lookup', () => {
  test('answers with exactly the members and values of the documented answer', async () => {
    const { url } = await startSandbox();
    const expected = await fixture('graph/media_get_200.json');
    const response = await graph(`${url}/v26.0/600000000000001`);
    expect(response.status).toBe(200);
    const body = await response.json();
    expect(Object.keys(body)).toEqual(Object.keys(expected.body));
    expect({ ...body, url: null }).toEqual({ ...expected.body, url: null });
    expect(body.url).toMatch(
      /^http:\/\/127\.0\.0\.1:\d+\/media-download\/600000000000001\?ext=\d+&hash=\w+$/,
    );
  });

  test('serves for every media id in the fixtures bytes of the digest and type that the fixture names', async () => {
    const { url } = await startSandbox();
    const files = (await readdir(FIXTURES)).filter(
      (name) => name.endsWith('.json') && name !== 'scenarios.json',
    );
    const bodies = await Promise.all(files.map((name) => readFile(new URL(name, FIXTURES), 'utf8')));
    const media = bodies.flatMap((body) => mediaIn(JSON.parse(body)));
    expect(media.length).toBeGreaterThan(5);
    for (const { id, sha256, mime_type } of media) {
      const lookup = await (await graph(`${url}/v21.0/${id}`)).json();
      const bytes = Buffer.from(await (await graph(lookup.url)).arrayBuffer());
      expect(createHash('sha256').update(bytes).digest('base64')).toBe(sha256);
      expect(lookup.mime_type).toBe(mime_type);
      expect(bytes.toString()).toBe(`fixture-media:${id}\n`);
    }
  });

  test.each(['no-such-id', '690000000000000001', '1'.repeat(40), '%00', "'"])(
    'answers error 100/33 for the unknown id %s',
    async (id) => {
      const { url } = await startSandbox();
      const response = await graph(`${url}/v26.0/${id}`);
      expect(response.status).toBe(400);
      expect((await response.json()).error).toMatchObject({
        type: 'GraphMethodException',
        code: 100,
        error_subcode: 33,
      });
    },
  );

  test('answers as documented for a deleted object, and the bytes are gone too', async () => {
    const { url } = await startSandbox();
    const object = `${url}/v26.0/600000000000001`;
    const { url: download } = await (await graph(object)).json();
    expect(await (await graph(object, { method: 'DELETE' })).json()).toEqual({ success: true });
    const expected = await fixture('graph/media_get_400_gone.json');
    const response = await graph(object);
    expect(response.status).toBe(expected.status);
    const { error } = await response.json();
    expect({ error: { ...error, fbtrace_id: 'AFixtureTraceId0000000' } }).toEqual(expected.body);
    expect((await graph(download)).status).toBe(404);
    expect((await graph(object, { method: 'DELETE' })).status).toBe(400);
  });
});

describe('access token', () => {
  test.each([{}, { authorization: 'Basic abc' }, { authorization: 'Bearer ' }])(
    'is required: %o is answered as a token that has ended',
    async (headers) => {
      const { url } = await startSandbox();
      const expected = await fixture('graph/err_190_token.json');
      const response = await call(`${url}/v26.0/600000000000001`, { headers: { ...headers } });
      expect(response.status).toBe(401);
      const { error } = await response.json();
      expect({ error: { ...error, fbtrace_id: 'AFixtureTraceId0000000' } }).toEqual(expected.body);
    },
  );

  test('must be the configured one on every route, the download too', async () => {
    const { url } = await startSandbox({ accessToken: 'the-right-one' });
    const right = { authorization: 'Bearer the-right-one' };
    const lookup = await (await call(`${url}/v26.0/600000000000001`, { headers: right })).json();
    expect((await graph(`${url}/v26.0/600000000000001`)).status).toBe(401);
    expect((await graph(lookup.url)).status).toBe(401);
    expect((await call(lookup.url)).status).toBe(401);
    expect((await call(lookup.url, { headers: right })).status).toBe(200);
  });
});

describe('download address', () => {
  test('ends after its lifetime, and a new lookup gives a new one', async () => {
    let now = Date.UTC(2026, 8, 21);
    const { url } = await startSandbox({ now: () => now });
    const lookup = async () => (await (await graph(`${url}/v26.0/600000000000001`)).json()).url;
    const first = await lookup();
    now += 4 * 60_000 + 59_000;
    expect((await graph(first)).status).toBe(200);
    now += 1000;
    expect((await graph(first)).status).toBe(404);
    expect((await graph(await lookup())).status).toBe(200);
  });

  test('cannot be made or prolonged by a caller, nor used for another object', async () => {
    const { url } = await startSandbox();
    const { url: address } = await (await graph(`${url}/v26.0/600000000000001`)).json();
    const prolonged = new URL(address);
    prolonged.searchParams.set('ext', '99999999999');
    expect((await graph(prolonged.href)).status).toBe(404);
    expect((await graph(address.replace('600000000000001', '600000000000002'))).status).toBe(404);
    expect((await graph(`${url}/media-download/600000000000001`)).status).toBe(404);
  });
});

describe('upload', () => {
  test('through the Graph API gives an id whose bytes, type and digest come back', async () => {
    const { url } = await startSandbox();
    const bytes = Buffer.from([0, 255, 10, 13, 128, 7]);
    const form = new FormData();
    form.set('messaging_product', 'whatsapp');
    form.set('type', 'image/png');
    form.set('file', new Blob([bytes], { type: 'image/png' }), 'ünï.png');
    const uploaded = await graph(`${url}/v26.0/800000000000111/media`, { method: 'POST', body: form });
    const { id } = await uploaded.json();
    const lookup = await (await graph(`${url}/v26.0/${id}`)).json();
    expect(lookup).toMatchObject({ mime_type: 'image/png', file_size: 6 });
    expect(lookup.sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
    expect(Buffer.from(await (await graph(lookup.url)).arrayBuffer())).toEqual(bytes);
  });

  test.each([
    ['multipart/form-data; boundary=x', 'not a form at all'],
    ['multipart/form-data', ''],
    ['application/json', '{}'],
  ])('is refused with error 100 when it is not a complete form (%s)', async (contentType, body) => {
    const { url } = await startSandbox();
    const init = { method: 'POST', body, headers: { 'content-type': contentType } };
    const response = await graph(`${url}/v26.0/800000000000111/media`, init);
    expect(response.status).toBe(400);
    expect((await response.json()).error.code).toBe(100);
  });

  test('through the control API streams back a large file unharmed', async () => {
    const { url } = await startSandbox();
    const bytes = Buffer.alloc(3_000_001, 'abcdefg');
    const stored = await call(`${url}/sandbox/media?filename=a.bin`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: bytes,
    });
    const media = await stored.json();
    expect(media).toEqual({
      id: expect.stringMatching(/^\d+$/),
      sha256: createHash('sha256').update(bytes).digest('base64'),
      sizeBytes: bytes.length,
      mimeType: 'application/json',
    });
    const lookup = await (await graph(`${url}/v26.0/${media.id}`)).json();
    const download = await graph(lookup.url);
    expect(download.headers.get('content-length')).toBe(String(bytes.length));
    expect(Buffer.from(await download.arrayBuffer()).equals(bytes)).toBe(true);
  });
});
