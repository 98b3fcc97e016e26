import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type GraphClient, openGraphClient } from '../../../../src/platform/graph/graph-client.ts';
import { MediaHostRefused } from '../../../../src/platform/graph/graph-connection.ts';
import { GraphError } from '../../../../src/platform/graph/graph-error.ts';
import { eventually } from '../../../support/webhook-receiver.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A client and an upstream of our own making. */
async function withUpstream(
  handler: Handler,
): Promise<{ graph: GraphClient; url: string; seen: IncomingMessage[] }> {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const upstream = {
    graphUrl: url,
    graphVersion: 'v26.0',
    mediaHosts: ['127.0.0.1'],
    appSecrets: [],
    signup: null,
    verifyToken: '',
  };
  const graph = openGraphClient({ upstream, mode: 'development' });
  onTestFinished(async () => {
    await graph.close();
    server.closeAllConnections();
    server.close();
  });
  return { graph, url, seen };
}

const json =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Handler =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };

describe('the Graph API client', () => {
  test('looks media up with the token and without phone_number_id; both spellings of the size are read', async () => {
    for (const fileSize of [303_833, '303833']) {
      const { graph, seen } = await withUpstream(
        json({
          url: 'https://x.fbsbx.com/1',
          mime_type: 'image/jpeg',
          sha256: 'ab',
          file_size: fileSize,
          id: '1',
        }),
      );
      expect(await graph.lookUpMedia('600000000000001', 'secret-token')).toEqual({
        url: 'https://x.fbsbx.com/1',
        mimeType: 'image/jpeg',
        sha256: 'ab',
        sizeBytes: 303_833,
      });
      expect(seen[0]?.url).toBe('/v26.0/600000000000001');
      expect(seen[0]?.headers).toMatchObject({ authorization: 'Bearer secret-token' });
      expect(seen[0]?.headers['user-agent']).toMatch(/^Heliograph\//);
    }
  });

  test('an id cannot leave its place in the path', async () => {
    const { graph, seen } = await withUpstream(json({ data: [] }));
    await graph.findProducts('../me?fields=id#', ['sku'], 't');
    expect(seen[0]?.url).toMatch(/^\/v26\.0\/\.\.%2Fme%3Ffields%3Did%23\//);
  });

  test('an id that is no number is never asked for', async () => {
    const { graph, seen } = await withUpstream(json({ url: 'x' }));
    for (const id of ['', '.', '..', 'me', '../me?fields=id#', '1/phone_numbers', '1?fields=x', '1,2'])
      await expect(graph.lookUpMedia(id, 't')).rejects.toThrow(GraphError);
    expect(seen).toEqual([]);
  });

  test.each<[string, Handler]>([
    ['no JSON', (_request, response) => void response.end('<html>')],
    ['an empty answer', (_request, response) => void response.end()],
    ['a lookup without an address', json({ id: '1' })],
    ['a list instead of an object', json([])],
    ['an answer that is far too long', json({ url: 'x'.repeat(2_000_000) })],
    ['a cut connection', (request) => request.socket.destroy()],
  ])('%s is an error that may pass', async (_name, handler) => {
    const { graph } = await withUpstream(handler);
    const failure = await graph.lookUpMedia('1', 'secret-token').catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(GraphError);
    expect(failure).toMatchObject({ transient: true });
    expect(String(failure)).not.toContain('secret-token');
  });

  test('a refusal carries status, code, subcode and the wait that was asked for', async () => {
    const error = { message: '(#80007) Rate limit', code: 80_007, error_subcode: 5 };
    const { graph } = await withUpstream(json({ error }, 400, { 'retry-after': '9' }));
    await expect(graph.lookUpMedia('1', 't')).rejects.toMatchObject({
      httpStatus: 400,
      code: 80_007,
      subcode: 5,
      transient: true,
      retryAfterMs: 9_000,
      message: '(#80007) Rate limit',
    });
  });

  test('the caller’s signal ends a call that hangs', async () => {
    const { graph } = await withUpstream(() => undefined);
    const reason = new Error('the caller gave up');
    const caller = new AbortController();
    const call = graph.lookUpMedia('1', 't', caller.signal);
    caller.abort(reason);
    await expect(call).rejects.toBe(reason);
  });

  test('a download streams the bytes and tells their type', async () => {
    const { graph, url } = await withUpstream((_request, response) => {
      response.writeHead(200, { 'content-type': 'image/png', 'content-length': 5 }).end('bytes');
    });
    const download = await graph.download(`${url}/m`, 't');
    expect(download).toMatchObject({ contentType: 'image/png' });
    expect((await buffer(Readable.from(download.body))).toString()).toBe('bytes');
  });

  test('a download that is shorter than it says is an error', async () => {
    const { graph, url } = await withUpstream((_request, response) => {
      response.writeHead(200, { 'content-length': 10 }).write('bytes');
      setTimeout(() => response.destroy(), 50);
    });
    const { body } = await graph.download(`${url}/m`, 't');
    await expect(buffer(Readable.from(body))).rejects.toThrow(GraphError);
  });

  test('a download that is discarded before it is read closes its connection', async () => {
    let closed = false;
    const { graph, url } = await withUpstream((_request, response) => {
      response.writeHead(200).write('first bytes of many');
      response.on('close', () => {
        closed = true;
      });
    });
    (await graph.download(`${url}/m`, 't')).discard();
    await eventually('the connection is closed', () => closed);
  });

  test('a redirect is not followed, so the token goes nowhere else', async () => {
    const { graph, url, seen } = await withUpstream((_request, response) => {
      response.writeHead(302, { location: '/elsewhere' }).end();
    });
    await expect(graph.download(`${url}/m`, 't')).rejects.toMatchObject({ httpStatus: 302, transient: true });
    expect(seen.map((request) => request.url)).toEqual(['/m']);
  });

  test('a host that is not listed is not even connected to', async () => {
    const { graph, url, seen } = await withUpstream(json({}));
    const other = url.replace('127.0.0.1', 'localhost');
    await expect(graph.download(`${other}/m`, 't')).rejects.toThrow(MediaHostRefused);
    expect(seen).toEqual([]);
  });

  test('phone numbers are read over all pages', async () => {
    const number = (id: string) => ({
      id,
      display_phone_number: '+1',
      verified_name: 'Shop',
      quality_rating: 'NA',
    });
    const { graph, url, seen } = await withUpstream((request, response) => {
      const isFirst = !request.url?.includes('after=');
      const cursors = { before: 'a', after: 'b' };
      const paging = isFirst ? { cursors, next: `${url}/next` } : { cursors };
      json({ data: [number(isFirst ? '1' : '2'), 'rubbish', {}], paging })(request, response);
    });
    const numbers = await graph.listPhoneNumbers('900000000000101', 't');
    expect(numbers.map(({ phoneNumberId }) => phoneNumberId)).toEqual(['1', '2']);
    expect(numbers[0]).toMatchObject({ displayPhoneNumber: '+1', verifiedName: 'Shop', qualityRating: 'NA' });
    expect(seen).toHaveLength(2);
  });

  test('products are asked for by retailer id, in calls of bearable length', async () => {
    const { graph, seen } = await withUpstream(
      json({ data: [{ retailer_id: 'a', name: 'A' }, { name: 'no id' }] }),
    );
    expect(await graph.findProducts('700000000000001', ['a', 'ü&"'], 't')).toEqual([
      { retailerId: 'a', name: 'A', imageUrl: null },
    ]);
    const asked = new URL(seen[0]?.url ?? '', 'http://x');
    expect(asked.pathname).toBe('/v26.0/700000000000001/products');
    expect(JSON.parse(asked.searchParams.get('filter') ?? '')).toEqual({
      retailer_id: { is_any: ['a', 'ü&"'] },
    });
    await graph.findProducts(
      '700000000000001',
      Array.from({ length: 200 }, (_, n) => `${n}${'é'.repeat(200)}`),
      't',
    );
    for (const request of seen) expect(request.url?.length).toBeLessThan(8_000);
  });
});

describe('an answer that was compressed although nobody asked for it', () => {
  const encodings = [
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const;

  test.each(encodings)('is read as what it was: %s', async (encoding, compress) => {
    const file = Buffer.alloc(200_000, 'bytes of the file ');
    const { graph, url } = await withUpstream((request, response) => {
      const content = request.url?.endsWith('/file')
        ? file
        : JSON.stringify({ url: 'https://x.fbsbx.com/1' });
      response.writeHead(200, { 'content-encoding': encoding }).end(compress(content));
    });
    expect(await graph.lookUpMedia('1', 'token')).toMatchObject({ url: 'https://x.fbsbx.com/1' });
    const { body } = await graph.download(`${url}/file`, 'token');
    expect((await buffer(body)).equals(file)).toBe(true);
  });

  test('is an error when it is cut, when it is none, and when its encoding is not known', async () => {
    const answers: [string, Buffer][] = [
      ['gzip', gzipSync('x'.repeat(100_000)).subarray(0, 60)],
      ['gzip', Buffer.from('not compressed at all')],
      ['compress', Buffer.from('?')],
    ];
    for (const [encoding, bytes] of answers) {
      const { graph, url } = await withUpstream((_request, response) => {
        response.writeHead(200, { 'content-encoding': encoding }).end(bytes);
      });
      await expect(graph.lookUpMedia('1', 'token')).rejects.toBeInstanceOf(GraphError);
      const read = async () => await buffer((await graph.download(`${url}/file`, 'token')).body);
      await expect(read()).rejects.toBeInstanceOf(GraphError);
    }
  });

  test('is read only as far as an answer may go', async () => {
    const { graph } = await withUpstream((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(64 * 1024 * 1024)));
    });
    await expect(graph.lookUpMedia('1', 'token')).rejects.toThrow(/longer than/);
  });
});
