import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { query } from '../../../src/platform/postgres/sql.ts';
import { sendUnfinishedWebhooks, type UnfinishedWebhooks } from '../../support/load/unfinished-webhooks.ts';
import { PROXY_MEMORY_BYTES, type ShippedProxy, startShippedProxy } from '../../support/shipped-proxy.ts';
import { BUILD_TIMEOUT_MS, goProgram } from '../../unit/deployment/go-programs.ts';
import { signed, startTestApi, testConfig } from '../api/api-harness.ts';

beforeAll(async () => void (await goProgram('caddy')), BUILD_TIMEOUT_MS);

const WEBHOOK = '/upstream/webhook';
const KIB = 1024;
const MIB = 1024 * KIB;
const CONNECTIONS = 200;
const GENUINE_WEBHOOKS = 40;

/** The proxy and the API wait for the rest of a body for 5 s at least: what waits for such a body is answered later. */
const ANSWERED_WITHIN_MS = 4_000;

const FORM_OF_A_SIGNATURE = `sha256=${'0'.repeat(64)}`;

type Way = Omit<UnfinishedWebhooks, 'port' | 'count'> & { name: string };

const SIGNED = { signature: FORM_OF_A_SIGNATURE, isHttp2: false };

const WAYS: Way[] = [
  { name: 'large, without a signature', ...SIGNED, signature: null, lengthBytes: 4 * MIB, manner: 'fast' },
  { name: 'large', ...SIGNED, lengthBytes: 3 * MIB, manner: 'fast' },
  { name: 'small', ...SIGNED, lengthBytes: 59_000, manner: 'fast' },
  { name: 'slow', ...SIGNED, lengthBytes: 59_000, manner: 'slow' },
  { name: 'in few connections', ...SIGNED, lengthBytes: 59_000, manner: 'fast', isHttp2: true },
];

type Stack = { proxy: ShippedProxy; countStored: () => Promise<number> };

/** The API behind the proxy of the Compose stack. */
async function startStack(): Promise<Stack> {
  const config = testConfig({ HELIOGRAPH_TRUST_PROXY: '127.0.0.1' });
  const { app, database } = await startTestApi(async () => ({ config }));
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const proxy = await startShippedProxy(Number(port));
  const countStored = async () => {
    const [row] = await query<{ count: string }>(database, 'select count(*) from inbox');
    return Number(row?.count);
  };
  return { proxy, countStored };
}

test.each(WAYS)(
  '200 unfinished bodies, $name, leave the proxy its memory and are waited for by no genuine webhook',
  async ({ name: _, ...way }) => {
    const stack = await startStack();
    const { proxy } = stack;
    const port = way.isHttp2 ? proxy.httpsPort : proxy.httpPort;
    const countOpen = sendUnfinishedWebhooks({ ...way, port, count: CONNECTIONS });
    await postGenuine(stack);
    expect(await stack.countStored()).toBe(GENUINE_WEBHOOKS);
    expectMemoryLeft(proxy);
    // However long they would go on, the proxy or the API ends them.
    await expect.poll(countOpen).toBe(0);
  },
);

test('a webhook without a signature is refused at once, however much of its body is missing', async () => {
  const { proxy } = await startStack();
  for (const lengthBytes of [1, 59_000, 4 * MIB]) {
    const socket = openSocket(proxy.httpPort);
    let answer = '';
    socket.on('data', (chunk) => {
      answer += String(chunk);
    });
    socket.write(`POST ${WEBHOOK} HTTP/1.1\r\nHost: x\r\nContent-Length: ${lengthBytes}\r\n\r\n`);
    socket.write(Buffer.alloc(lengthBytes - 1));
    // What is missing would be waited for for ten seconds.
    await expect.poll(() => answer).toContain('"invalid_signature"');
    expect(answer).toMatch(/^HTTP\/1.1 401 .*\r\n(.+\r\n)*connection: close\r\n/i);
  }
});

test('headers that do not end, and headers without measure, are cut', async () => {
  const { proxy } = await startStack();
  const sockets = Array.from({ length: CONNECTIONS }, () => {
    const socket = openSocket(proxy.httpPort).resume();
    socket.write(`POST ${WEBHOOK} HTTP/1.1\r\nHost: x\r\nX-Filler: ${'x'.repeat(512 * KIB)}`);
    return socket;
  });
  await expect.poll(() => sockets.filter(({ destroyed }) => !destroyed).length).toBe(0);
  expectMemoryLeft(proxy);
});

test('webhooks of up to 3 MiB reach the API as they were signed; larger and unsigned ones are refused', async () => {
  const { proxy, countStored } = await startStack();
  for (const sizeBytes of [1, 59_999, 60_000, 70_000, 3 * MIB]) {
    expect((await post(proxy.httpPort, randomBytes(sizeBytes))).status).toBe(200);
  }
  expect(await countStored()).toBe(5);
  expect((await post(proxy.httpPort, randomBytes(3 * MIB + 1))).status).toBe(413);
  const unsigned = await fetch(`http://127.0.0.1:${proxy.httpPort}${WEBHOOK}`, { method: 'POST', body: 'x' });
  expect([unsigned.status, await unsigned.text()]).toEqual([
    401,
    expect.stringContaining('"invalid_signature"'),
  ]);
});

test('a webhook whose API process dies is sent to another one, and a large one is never sent in part', async () => {
  const bodies: Buffer[] = [];
  const dying = createServer(async (request, response) => {
    const body = await buffer(request).catch(() => Buffer.alloc(0));
    if (request.method === 'POST') bodies.push(body);
    if (bodies.length % 2 === 1) request.socket.destroy();
    else response.end();
  });
  dying.listen(0, '127.0.0.1');
  await once(dying, 'listening');
  onTestFinished(() => void dying.close());
  const proxy = await startShippedProxy((dying.address() as AddressInfo).port);
  const small = randomBytes(59_999);
  expect((await post(proxy.httpPort, small)).status).toBe(200);
  expect(bodies).toEqual([small, small]);
  const large = randomBytes(60_000);
  expect((await post(proxy.httpPort, large)).status).toBe(502);
  expect(bodies.slice(2)).toEqual([large]);
});

async function post(port: number, body: Buffer): Promise<{ status: number }> {
  const init = { method: 'POST', headers: signed(body), body: new Uint8Array(body) };
  const { status } = await fetch(`http://127.0.0.1:${port}${WEBHOOK}`, {
    ...init,
    signal: AbortSignal.timeout(ANSWERED_WITHIN_MS),
  });
  return { status };
}

/** Webhooks as upstream sends them, one after the other while the others are held. Each is answered in time. */
async function postGenuine({ proxy }: Stack): Promise<void> {
  for (let n = 0; n < GENUINE_WEBHOOKS; n += 1) {
    const { status } = await post(proxy.httpPort, randomBytes(n % 10 === 9 ? MIB : 800));
    expect(status).toBe(200);
    await sleep(50);
  }
}

function expectMemoryLeft(proxy: ShippedProxy): void {
  expect(proxy.isRunning()).toBe(true);
  const peakBytes = proxy.peakMemoryBytes();
  process.stdout.write(`the proxy had ${Math.round(peakBytes / MIB)} MiB at most\n`);
  expect(peakBytes).toBeLessThan(PROXY_MEMORY_BYTES / 2);
}

function openSocket(port: number): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
}
