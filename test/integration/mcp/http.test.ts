import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { serveHttp } from '../../../src/mcp/mcp-http.ts';
import { makeTools } from '../../../src/mcp/mcp-server.ts';
import { apiOfFile, freshKeyHolder } from '../api/api-harness.ts';
import { ERAS, httpClient, listen } from './mcp-clients.ts';

const api = apiOfFile();
let server: Awaited<ReturnType<typeof serveHttp>>;
let key: string;
const logged: string[] = [];

beforeAll(async () => {
  server = await serveHttp(makeTools([]), {
    ...{ host: '127.0.0.1', port: 0, allowedHosts: ['mcp.example'], apiUrl: await listen(api.app) },
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
  body = '{}',
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
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: {
    ...{ protocolVersion: '2025-06-18', capabilities: {} },
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

test('a key that the API refuses is refused by each tool', async () => {
  const caller = await httpClient(server.url, `ck_${'0'.repeat(64)}`);
  expect(await caller.call('listEvents')).toMatchObject({
    isError: true,
    text: expect.stringContaining('"invalid_api_key"'),
  });
  await caller.close();
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
    const answer = await new Promise<string>((resolve) =>
      socket.once('data', (data) => resolve(String(data))),
    );
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    expect(answer.toLowerCase()).toContain('connection: close');
    await new Promise((resolve) => socket.once('close', resolve));
  });

  test('leaves the key in no log', async () => {
    expect(await post(asCaller(), INITIALIZE)).toBe(200);
    expect(await post({ ...asCaller(), host: 'evil.example' }, INITIALIZE)).toBe(403);
    expect(await post(asCaller(), '{')).toBe(400);
    expect(logged.join('\n')).not.toContain(key);
  });
});
