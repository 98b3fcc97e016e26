import { connect as connectTo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type EgressProxy, parseEgressProxy } from '../../../src/platform/http/egress-proxy-url.ts';
import { makeProxyRoute } from '../../../src/platform/sender/proxy-route.ts';
import { lookAtProxy } from '../../../src/platform/sender/proxy-tunnel.ts';
import { startConnectProxy } from '../../support/connect-proxy.ts';
import {
  closedPort,
  httpServer,
  httpsServer,
  outcomeOf,
  rawAnswer,
  request,
  tcpServer,
  testSender,
} from './loopback-servers.ts';

const NAME = 'hooks.tenant.example';

async function startProxy(options: Parameters<typeof startConnectProxy>[0] = {}) {
  const server = await startConnectProxy(options);
  onTestFinished(() => server.stop());
  return server;
}

function proxyAt(port: number, credentials = ''): EgressProxy {
  const proxy = parseEgressProxy(`http://${credentials}${credentials === '' ? '' : '@'}127.0.0.1:${port}`);
  if (proxy === null) throw new Error('no proxy');
  return proxy;
}

function senderThrough(port: number, options: Parameters<typeof testSender>[0] = {}) {
  return testSender({ route: makeProxyRoute(proxyAt(port)), ...options });
}

describe('a request through the egress proxy', () => {
  test('asks for the address that was checked, and verifies the certificate of the name', async () => {
    const { port, ca } = await httpsServer((_incoming, response) => response.end('ok'), [NAME]);
    const proxy = await startProxy({ credentials: 'hooks:p@ss' });
    const route = makeProxyRoute(proxyAt(proxy.port, 'hooks:p%40ss'));
    const sender = testSender({ ca, resolve: async () => ['127.0.0.1'], route });
    const result = await sender.send(request(`https://${NAME}:${port}/`));
    expect(result).toMatchObject({
      statusCode: 200,
      remoteAddress: '127.0.0.1',
      timings: { connectMs: expect.any(Number), tlsMs: expect.any(Number), reused: false },
    });
    expect(proxy.asked).toEqual([`127.0.0.1:${port}`]);
    const other = await sender.send(request(`https://other.example:${port}/`));
    expect(other).toMatchObject({ errorClass: 'tls', message: expect.stringMatching(/ALTNAME/) });
  });

  test('uses a connection again', async () => {
    const { url } = await httpServer((_incoming, response) => response.end());
    const proxy = await startProxy();
    const sender = senderThrough(proxy.port);
    const reused = [];
    for (let n = 0; n < 3; n += 1) {
      reused.push((await sender.send(request(url))).timings.reused);
      // undici frees the connection after it has told of the end of the response.
      await sleep(20);
    }
    expect(reused).toEqual([false, true, true]);
    expect(proxy.asked).toHaveLength(1);
  });

  test('never asks the proxy for an address inside, whatever a name resolves to later', async () => {
    const proxy = await startProxy();
    let lookups = 0;
    const resolve = async () => [lookups++ === 0 ? '10.0.0.1' : '127.0.0.1'];
    const sender = senderThrough(proxy.port, { resolve });
    expect(outcomeOf(await sender.send(request(`http://${NAME}/`)))).toBe('dns');
    expect(outcomeOf(await sender.send(request('http://10.0.0.1/')))).toBe('blocked_address');
    expect(proxy.asked).toEqual([]);
    expect(lookups).toBe(1);
  });

  test('tries the next address when the proxy cannot reach the first', async () => {
    const { port } = await httpServer((_incoming, response) => response.end());
    const answer = (authority: string) =>
      authority.startsWith('[') ? 'HTTP/1.1 502 Bad Gateway\r\n\r\n' : null;
    const proxy = await startProxy({ answer });
    const sender = senderThrough(proxy.port, { resolve: async () => ['::1', '127.0.0.1'] });
    expect(outcomeOf(await sender.send(request(`http://${NAME}:${port}/`)))).toBe(200);
    expect(proxy.asked).toEqual([`[::1]:${port}`, `127.0.0.1:${port}`]);
  });
});

describe('a fault of the proxy is not one of the receiver', () => {
  test('when nothing listens', async () => {
    const result = await senderThrough(await closedPort()).send(request('http://127.0.0.1:9999/'));
    expect(result).toMatchObject({
      errorClass: 'proxy',
      message: 'The egress proxy of this installation does not work: it refuses connections.',
    });
  });

  test('when it does not accept our credentials, which no message holds', async () => {
    const proxy = await startProxy({ credentials: 'hooks:right' });
    const route = makeProxyRoute(proxyAt(proxy.port, 'hooks:wrong'));
    const result = await testSender({ route }).send(request('http://127.0.0.1:9999/'));
    expect(result).toMatchObject({
      errorClass: 'proxy',
      message: expect.stringMatching(/credentials \(407\)/),
    });
    expect(JSON.stringify(result)).not.toContain('wrong');
  });

  test.each([
    ['HTTP/1.1 400 Bad Request\r\n\r\n', /answers CONNECT with 400/],
    ['SSH-2.0-OpenSSH\r\n\r\n', /does not speak HTTP/],
  ])('when it answers %j', async (answer, message) => {
    const { port } = await rawAnswer(answer);
    const result = await senderThrough(port).send(request('http://127.0.0.1:9999/'));
    expect(result).toMatchObject({ errorClass: 'proxy', message: expect.stringMatching(message) });
  });

  test('when it is frozen, for a new connection and for one in use', async () => {
    const frozen = await tcpServer((socket) => socket.pause());
    expect(outcomeOf(await senderThrough(frozen.port).send(request('http://127.0.0.1:9999/')))).toBe('proxy');

    const { url } = await httpServer(() => undefined);
    let isFrozen = false;
    const proxy = await startProxy();
    const front = await tcpServer((socket) => {
      if (isFrozen) {
        socket.pause();
        return;
      }
      const inner = connectTo(proxy.port, '127.0.0.1').on('error', () => undefined);
      socket.pipe(inner).pipe(socket);
    });
    const sending = senderThrough(front.port).send(request(url));
    await sleep(100);
    isFrozen = true;
    expect(outcomeOf(await sending)).toBe('proxy');
  });

  test('when it dies under a request', async () => {
    const { url } = await httpServer(() => undefined);
    const proxy = await startConnectProxy();
    const sending = senderThrough(proxy.port).send(request(url));
    await expect.poll(() => proxy.asked.length).toBe(1);
    await proxy.stop();
    expect(outcomeOf(await sending)).toBe('proxy');
  });
});

describe('a fault of the receiver stays one', () => {
  test('when it does not answer in time, resets, or cannot be reached by a proxy that works', async () => {
    const proxy = await startProxy();
    const sender = senderThrough(proxy.port, { totalTimeoutMs: 1_000 });
    const silent = await httpServer(() => undefined);
    expect(outcomeOf(await sender.send(request(silent.url)))).toBe('timeout');
    const resetting = await tcpServer((socket) => socket.destroy());
    expect(['closed', 'reset']).toContain(outcomeOf(await sender.send(request(resetting.url))));
    const gone = await sender.send(request(`http://127.0.0.1:${await closedPort()}/`));
    expect(gone).toMatchObject({
      errorClass: 'unreachable',
      message: 'The egress proxy could not reach the address (502).',
    });
  });

  test('when the proxy waits for it', async () => {
    const proxy = await startProxy({ answer: () => 'hang' });
    const sender = senderThrough(proxy.port, { connectTimeoutMs: 500 });
    expect(outcomeOf(await sender.send(request('http://127.0.0.1:9999/')))).toBe('timeout');
  });

  test.each([
    'HTTP/1.1 403 Forbidden\r\n\r\n',
    'HTTP/1.1 407 Request rejected by proxy\r\nX-Smokescreen-Error: denied\r\n\r\n',
  ])('when the proxy does not allow its address: %j', async (answer) => {
    const proxy = await startProxy({ answer: () => answer });
    const result = await senderThrough(proxy.port).send(request('http://127.0.0.1:9999/'));
    expect(result).toMatchObject({
      errorClass: 'proxy_refused',
      message: expect.stringMatching(/not allow/),
    });
  });
});

test('the state of the proxy is told when it goes down and when it returns', async () => {
  const first = await startConnectProxy();
  const told: string[] = [];
  const route = makeProxyRoute(proxyAt(first.port), {
    onDown: (trouble) => told.push(trouble),
    onUp: () => told.push('up'),
  });
  expect(await route.look()).toBe(true);
  await first.stop();
  await sleep(600);
  expect(await route.look()).toBe(false);
  expect(route.trouble()).toMatch(/refuses connections/);
  await startProxy({ port: first.port });
  await expect.poll(() => route.trouble()).toBeNull();
  expect(told).toEqual([expect.stringMatching(/refuses connections/), 'up']);
});

test('a proxy that makes connections to its own loopback address is noticed', async () => {
  const { port } = await rawAnswer('HTTP/1.1 200 OK\r\n\r\n');
  expect(await lookAtProxy(proxyAt(port), 1_000)).toEqual({ trouble: null, isOpenInside: true });
});

test.each(['https://proxy:4750', 'proxy:4750', 'http://proxy:4750/path', 'http://user:se%cret@proxy:4750'])(
  'a URL that is none of such a proxy is refused without repeating it: %s',
  (url) => {
    expect(() => parseEgressProxy(url)).toThrow(/^must have/);
  },
);
