import { randomBytes } from 'node:crypto';
import { Agent, createServer, request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { hashApiKey } from '../../../src/features/keys/api-key.ts';
import { makeKeyCheck } from '../../../src/mcp/key-check.ts';
import { serveHttp } from '../../../src/mcp/mcp-http.ts';
import { makeTools } from '../../../src/mcp/mcp-server.ts';
import { MAX_DROPPED_BYTES } from '../../../src/platform/http/read-body.ts';
import { execute } from '../../../src/platform/postgres/sql.ts';
import { listenInTest } from '../../support/listen.ts';
import { apiOfFile, freshKeyHolder } from '../api/api-harness.ts';
import { ERAS, httpClient, listen } from './mcp-clients.ts';

const api = apiOfFile();
let server: Awaited<ReturnType<typeof serveHttp>>;
let key: string;
const logged: string[] = [];

/** Every request that reached the gateway, and by which key. */
const asked: string[] = [];

beforeAll(async () => {
  api.app.server.on('request', ({ url, headers }) => asked.push(`${url} ${headers.authorization}`));
  server = await serveHttp(makeTools([]), {
    host: '127.0.0.1',
    port: 0,
    allowedHosts: ['mcp.example'],
    apiUrl: await listen(api.app),
    log: (line) => logged.push(line),
  });
});
afterAll(() => server.close());
beforeEach(async () => {
  ({ key } = await freshKeyHolder(api.database));
});

/** As a program does that sets every header itself, over a connection that no other request uses. */
async function post(
  headers: Record<string, string>,
  body: string | Buffer = '{}',
  path = '/mcp',
  agent: Agent | false = false,
): Promise<number> {
  return await new Promise((resolve, reject) => {
    const sent = request(server.url, { method: 'POST', path, headers, agent }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  },
});

const asCaller = () => ({
  authorization: `Bearer ${key}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
});

test.each(ERAS)('callers that begin with %s see what their own key may see', async (era) => {
  const holders = [await freshKeyHolder(api.database), await freshKeyHolder(api.database)];
  for (const { key: callerKey, wabaId } of holders) {
    const caller = await httpClient(server.url, callerKey, era);
    const { isError, text } = await caller.call('getAccountIdentity');
    expect([isError, text]).toEqual([false, expect.stringContaining(`"${wabaId}"`)]);
    expect((await caller.client.listTools()).tools.map(({ name }) => name)).not.toContain('sendMessage');
    await caller.close();
  }
});

test('a body that is no UTF-8, or said to be something else, is refused', async () => {
  const latin1 = Buffer.from(INITIALIZE.replace('test', 'é'), 'latin1');
  expect(await post(asCaller(), latin1)).toBe(400);
  const charset = { ...asCaller(), 'content-type': 'application/json; charset=iso-8859-1' };
  expect(await post(charset, INITIALIZE)).toBe(415);
  expect(await post({ ...asCaller(), 'content-encoding': 'gzip' }, INITIALIZE)).toBe(415);
  expect(await post(asCaller(), INITIALIZE)).toBe(200);
});

test('a body of too many values is refused before it is parsed', async () => {
  const withValues = (count: number) => {
    const params = { ...JSON.parse(INITIALIZE).params, _meta: { list: Array(count).fill(0) } };
    return JSON.stringify({ ...JSON.parse(INITIALIZE), params });
  };
  expect(await post(asCaller(), withValues(10_000))).toBe(413);
  expect(await post(asCaller(), withValues(9_000))).toBe(200);
});

describe('a key', () => {
  const madeUp = () => `ck_${randomBytes(32).toString('hex')}`;
  const tools = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  const search = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'searchDocs', arguments: { query: 'signature' } },
  });

  test('that the gateway does not know gets nothing done, and is asked about once', async () => {
    const key = madeUp();
    for (const body of [INITIALIZE, tools, search, '{']) {
      expect(await post({ ...asCaller(), authorization: `Bearer ${key}` }, body)).toBe(401);
    }
    expect(asked.filter((line) => line.includes(key))).toEqual([`/api/external/key Bearer ${key}`]);
  });

  test('that is right is asked about once in a minute, before anything else', async () => {
    for (const body of [INITIALIZE, tools, search]) expect(await post(asCaller(), body)).toBe(200);
    expect(asked.filter((line) => line.includes(key))).toEqual([`/api/external/key Bearer ${key}`]);
  });

  test('of networks elsewhere, or that is expired, is refused as the gateway refuses it', async () => {
    const { key: elsewhere } = await freshKeyHolder(api.database);
    const limit = `update api_keys set allowed_networks = '{192.0.2.0/24}' where key_hash = :elsewhere`;
    await execute(api.database, limit, { elsewhere: hashApiKey(elsewhere) });
    expect(await post({ ...asCaller(), authorization: `Bearer ${elsewhere}` }, INITIALIZE)).toBe(403);
    const { key: expired } = await freshKeyHolder(api.database);
    const end = 'update api_keys set expires_at = now() where key_hash = :expired';
    await execute(api.database, end, { expired: hashApiKey(expired) });
    expect(await post({ ...asCaller(), authorization: `Bearer ${expired}` }, INITIALIZE)).toBe(401);
  });

  test('of a gateway that is away is not refused for good', async () => {
    const gateway = createServer((_request, response) => response.destroy());
    const port = await listenInTest(gateway);
    const check = makeKeyCheck(`http://127.0.0.1:${port}`);
    expect(await check(key)).toMatchObject({ status: 503, code: 'gateway_unreachable' });
    gateway.removeAllListeners('request').on('request', (_request, response) => {
      response.setHeader('content-type', 'application/json').end('{}');
    });
    expect(await check(key)).toBeNull();
  });

  test('has so many requests at a time, and takes no place of another', async () => {
    expect(await post(asCaller(), INITIALIZE)).toBe(200);
    const open = Array.from({ length: 8 }, () => {
      const sent = request(server.url, { method: 'POST', headers: asCaller(), agent: false });
      sent.on('error', () => undefined).write('{');
      onTestFinished(() => void sent.destroy());
      return sent;
    });
    const { authorization } = await freshKeyHolder(api.database);
    await expect.poll(async () => await post(asCaller(), INITIALIZE)).toBe(429);
    expect(await post({ ...asCaller(), authorization }, INITIALIZE)).toBe(200);
    for (const sent of open) sent.end(' ');
    await expect.poll(async () => await post(asCaller(), INITIALIZE)).toBe(200);
  });
});

test('a list of messages in one request is refused', async () => {
  const call = JSON.parse(INITIALIZE);
  for (const list of [[], [call], Array.from({ length: 100 }, () => call)]) {
    expect(await post(asCaller(), ` ${JSON.stringify(list)}`)).toBe(400);
  }
});

describe('a request', () => {
  test('is served with the right headers', async () => {
    expect(await post(asCaller(), INITIALIZE)).toBe(200);
    expect(await post({ ...asCaller(), host: 'mcp.example' }, INITIALIZE)).toBe(200);
    expect(await post({ ...asCaller(), origin: 'http://localhost:6274' }, INITIALIZE)).toBe(200);
  });

  test('without a key is refused, and with something that is no key', async () => {
    const { authorization, ...others } = asCaller();
    expect(await post(others, INITIALIZE)).toBe(401);
    expect(await post({ ...others, authorization: 'Bearer ck_short' }, INITIALIZE)).toBe(401);
    expect(await post({ ...others, authorization: authorization.replace('Bearer', 'Basic') })).toBe(401);
  });

  test('from a page of another origin, or by a name that is not ours, is refused', async () => {
    expect(await post({ ...asCaller(), origin: 'https://evil.example' }, INITIALIZE)).toBe(403);
    expect(await post({ ...asCaller(), origin: 'null' }, INITIALIZE)).toBe(403);
    expect(await post({ ...asCaller(), host: 'evil.example' }, INITIALIZE)).toBe(403);
  });

  test('to another path, of another kind or size is refused', async () => {
    expect(await post(asCaller(), INITIALIZE, '/')).toBe(404);
    expect(await post(asCaller(), INITIALIZE, '//')).toBe(404);
    expect(await post({ ...asCaller(), 'content-type': 'text/plain' }, INITIALIZE)).toBe(415);
    expect(await post(asCaller(), '{')).toBe(400);
    expect(await post(asCaller(), JSON.stringify({ long: 'x'.repeat(600_000) }))).toBe(413);
  });

  test.each([
    ['with a length', 'content-length', 413],
    ['without a length', 'transfer-encoding', 413],
    ['of a caller without a key', 'content-length', 401],
  ])('that is too large, %s, is read to its end, and its client can go on', async (_, framing, status) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const body = 'x'.repeat(8_000_000);
    const head = { [framing]: framing === 'content-length' ? String(body.length) : 'chunked' };
    const { authorization, ...others } = asCaller();
    const caller = status === 401 ? others : { ...others, authorization };
    for (let turn = 0; turn < 3; turn += 1) {
      expect(await post({ ...caller, ...head }, body, '/mcp', agent)).toBe(status);
      expect(await post(asCaller(), INITIALIZE, '/mcp', agent)).toBe(200);
    }
  });

  test('that never ends is refused once too much of it has come', async () => {
    const { port, hostname } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    onTestFinished(() => void socket.destroy());
    const headers = Object.entries(asCaller()).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(
      `POST /mcp HTTP/1.1\r\nhost: ${hostname}\r\ntransfer-encoding: chunked\r\n${headers.join('')}\r\n`,
    );
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const more = () => {
      while (socket.write(chunk));
    };
    socket.on('drain', more).on('error', () => undefined);
    more();
    let answer = '';
    socket.on('data', (data) => {
      answer += String(data);
    });
    await new Promise((resolve) => socket.once('close', resolve));
    expect(socket.bytesWritten).toBeGreaterThan(MAX_DROPPED_BYTES);
    expect(socket.bytesWritten - socket.writableLength).toBeLessThan(2 * MAX_DROPPED_BYTES);
    // Who goes on sending may lose the answer: the connection is reset with what was not read.
    expect(answer).toMatch(/^$|^HTTP\/1.1 413 [\s\S]*connection: close/i);
  });

  test('leaves the key in no log', async () => {
    expect(await post(asCaller(), INITIALIZE)).toBe(200);
    expect(await post({ ...asCaller(), host: 'evil.example' }, INITIALIZE)).toBe(403);
    expect(await post(asCaller(), '{')).toBe(400);
    expect(logged.join('\n')).not.toContain(key);
  });
});
