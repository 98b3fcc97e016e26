import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { call, graph, type JsonResponse, postJson, startSandbox, until } from './sandbox-harness.ts';

const MEDIA_ID = '600000000000001';
const SEND = { messaging_product: 'whatsapp', to: '12025550143', type: 'text', text: { body: 'hi' } };

async function sandboxWith(fault: Record<string, unknown>) {
  const sandbox = await startSandbox({ statusDelayMs: 1 });
  const { url: address } = await (await graph(`${sandbox.url}/v26.0/${MEDIA_ID}`)).json();
  const added = await postJson(`${sandbox.url}/sandbox/faults`, fault);
  expect(added.status).toBe(200);
  const calls: Record<string, () => Promise<JsonResponse>> = {
    media_lookup: () => graph(`${sandbox.url}/v26.0/${MEDIA_ID}`),
    media_download: () => graph(address),
    send: () => postJson(`${sandbox.url}/v26.0/800000000000111/messages`, SEND),
    catalog: () => graph(`${sandbox.url}/v26.0/700000000000002/products`),
  };
  const ask = calls[String(fault.match)];
  if (ask === undefined) {
    throw new Error('There is no such ask.');
  }
  return { ...sandbox, ask };
}

const TARGETS = ['media_lookup', 'media_download', 'send', 'catalog'];

describe.each(TARGETS)('fault at %s', (match) => {
  test('slow: the right answer comes late', async () => {
    const { ask } = await sandboxWith({ match, kind: 'slow', delayMs: 150 });
    const startedAt = performance.now();
    expect((await ask()).status).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThan(140);
  });

  test('status: the HTTP status and error code are as told, so many times, then all is well', async () => {
    const { ask } = await sandboxWith({ match, kind: 'status', status: 429, code: 131056, times: 2 });
    for (const _attempt of [1, 2]) {
      const response = await ask();
      expect(response.status).toBe(429);
      expect((await response.json()).error.code).toBe(131056);
    }
    expect((await ask()).status).toBe(200);
  });

  test('status without a number is 503 with the transient code 2', async () => {
    const { ask } = await sandboxWith({ match, kind: 'status' });
    const response = await ask();
    expect(response.status).toBe(503);
    expect((await response.json()).error).toMatchObject({ code: 2, is_transient: true });
  });

  test('reset: the connection breaks', async () => {
    const { ask } = await sandboxWith({ match, kind: 'reset', times: 1 });
    await expect(ask().then((response) => response.arrayBuffer())).rejects.toThrow();
    expect((await ask()).status).toBe(200);
  });

  test('gone: the object is not there', async () => {
    const { ask } = await sandboxWith({ match, kind: 'gone' });
    expect((await ask()).status).toBe(match === 'media_download' ? 404 : 400);
  });

  test('endless: the body does not end, and the server survives the reader hanging up', async () => {
    const { ask, url } = await sandboxWith({ match, kind: 'endless', times: 1, delayMs: 0 });
    const response = await ask();
    const reader = response.body?.getReader();
    let sizeBytes = 0;
    while (sizeBytes < 5_000_000) {
      const part = await reader?.read();
      expect(part?.done).toBe(false);
      sizeBytes += part?.value?.length ?? 0;
    }
    await reader?.cancel();
    expect((await ask()).status).toBe(200);
    expect((await call(`${url}/sandbox/faults`)).status).toBe(200);
  });
});

describe('faults of media', () => {
  test('wrong_hash at the lookup names another digest of the right form', async () => {
    const { ask } = await sandboxWith({ match: 'media_lookup', kind: 'wrong_hash' });
    const { sha256, file_size } = await (await ask()).json();
    expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(sha256).not.toBe(createHash('sha256').update(`fixture-media:${MEDIA_ID}\n`).digest('hex'));
    expect(file_size).toBe(30);
  });

  test('wrong_hash at the download changes the bytes and not their number', async () => {
    const { ask } = await sandboxWith({ match: 'media_download', kind: 'wrong_hash' });
    const bytes = Buffer.from(await (await ask()).arrayBuffer());
    expect(bytes).toHaveLength(30);
    expect(bytes.toString()).not.toBe(`fixture-media:${MEDIA_ID}\n`);
  });

  test('expired at the lookup gives an address that has ended; at the download it has ended early', async () => {
    const lookup = await sandboxWith({ match: 'media_lookup', kind: 'expired', times: 1 });
    const first = await (await lookup.ask()).json();
    expect((await graph(first.url)).status).toBe(404);
    const second = await (await lookup.ask()).json();
    expect((await graph(second.url)).status).toBe(200);
    const download = await sandboxWith({ match: 'media_download', kind: 'expired', times: 1 });
    expect((await download.ask()).status).toBe(404);
    expect((await download.ask()).status).toBe(200);
  });

  test('too_large is more than 100 MiB, claimed by the lookup and announced by the download', async () => {
    const lookup = await sandboxWith({ match: 'media_lookup', kind: 'too_large' });
    expect((await (await lookup.ask()).json()).file_size).toBe(104_857_601);
    const download = await sandboxWith({ match: 'media_download', kind: 'too_large' });
    const response = await download.ask();
    expect(response.headers.get('content-length')).toBe('104857601');
    await response.body?.cancel();
  });

  test('reset at the download comes after half of the bytes', async () => {
    const { ask } = await sandboxWith({ match: 'media_download', kind: 'reset' });
    const reader = (await ask()).body?.getReader();
    expect((await reader?.read())?.value).toHaveLength(15);
    await expect(reader?.read()).rejects.toThrow();
  });
});

describe('fault register', () => {
  test('a fault with an id spares other objects', async () => {
    const { url } = await sandboxWith({ match: 'media_lookup', kind: 'gone', id: '600000000000002' });
    expect((await graph(`${url}/v26.0/${MEDIA_ID}`)).status).toBe(200);
    expect((await graph(`${url}/v26.0/600000000000002`)).status).toBe(400);
  });

  test('an accepted send whose connection breaks is reported on all the same', async () => {
    const { ask, ingress } = await sandboxWith({ match: 'send', kind: 'reset', accepted: true });
    await expect(ask()).rejects.toThrow();
    await until(() => ingress.webhooks.length === 3);
  });

  test('a refused send is not reported on', async () => {
    const { ask, ingress } = await sandboxWith({ match: 'send', kind: 'status', status: 500 });
    expect((await ask()).status).toBe(500);
    await new Promise((resolve) => setTimeout(resolve, 40));
    expect(ingress.webhooks).toHaveLength(0);
  });

  test('lists faults with their hits and clears them', async () => {
    const { ask, url } = await sandboxWith({ match: 'catalog', kind: 'gone' });
    await ask();
    const { data } = await (await call(`${url}/sandbox/faults`)).json();
    expect(data).toMatchObject([{ match: 'catalog', kind: 'gone', hits: 1, faultId: 'fault-1' }]);
    const cleared = await call(`${url}/sandbox/faults`, { method: 'DELETE' });
    expect(await cleared.json()).toEqual({ cleared: 1 });
    expect((await ask()).status).toBe(200);
  });

  test.each([
    {},
    { match: 'media_lookup' },
    { match: 'media_lookup', kind: 'bored' },
    { match: 'send', kind: 'wrong_hash' },
    { match: 'media_lookup', kind: 'slow', accepted: true },
    { match: 'media_lookup', kind: 'slow', delayMs: '5' },
    { match: 'media_lookup', kind: 'slow', suprise: 1 },
    null,
  ])('refuses %o with a reason', async (fault) => {
    const { url } = await startSandbox();
    const response = await postJson(`${url}/sandbox/faults`, fault);
    expect(response.status).toBe(400);
    expect((await response.json()).error.message).not.toBe('');
  });
});

describe('request log', () => {
  test('tells what was asked and whether it was allowed, without tokens', async () => {
    const { url } = await startSandbox();
    await call(`${url}/v26.0/${MEDIA_ID}?fields=url`);
    await graph(`${url}/v26.0/${MEDIA_ID}`);
    const text = await (await call(`${url}/sandbox/requests`)).text();
    expect(JSON.parse(text).data).toMatchObject([
      { method: 'GET', path: `/v26.0/${MEDIA_ID}`, id: MEDIA_ID, authorized: false, status: 401 },
      { method: 'GET', path: `/v26.0/${MEDIA_ID}`, id: MEDIA_ID, authorized: true, status: 200 },
    ]);
    expect(text).not.toContain('any-token');
  });

  test('keeps the newest thousand', async () => {
    const { url } = await startSandbox();
    for (let batch = 0; batch < 11; batch += 1) {
      await Promise.all(Array.from({ length: 100 }, () => call(`${url}/v26.0/${batch}`)));
    }
    const { data } = await (await call(`${url}/sandbox/requests`)).json();
    expect(data).toHaveLength(1000);
    expect(data.at(-1).id).toBe('10');
  });
});
