import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseEgressProxy } from '../../../src/platform/http/egress-proxy-url.ts';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { makeProxyRoute } from '../../../src/platform/sender/proxy-route.ts';
import { lookAtProxy } from '../../../src/platform/sender/proxy-tunnel.ts';
import { closedPort, httpsServer, outcomeOf, request, testSender } from './loopback-servers.ts';

const BINARY = process.env.HELIOGRAPH_TEST_SMOKESCREEN ?? 'smokescreen';
const isThere = spawnSync(BINARY, ['--help']).status === 0;

/** Skipped where there is none: go install github.com/stripe/smokescreen@latest. */
describe.skipIf(!isThere)('through Smokescreen', () => {
  let smokescreen: ChildProcess | undefined;
  let port = 0;

  beforeAll(async () => {
    port = await closedPort();
    // The receivers of these tests are on loopback, of which one port is opened below.
    const options = [
      '--listen-ip',
      '127.0.0.1',
      '--listen-port',
      String(port),
      '--allow-range',
      '127.0.0.2/32',
    ];
    smokescreen = spawn(BINARY, options, { stdio: 'ignore' });
    while (!(await accepts(port))) await sleep(50);
  });
  afterAll(() => void smokescreen?.kill());

  const proxy = () => {
    const parsed = parseEgressProxy(`http://127.0.0.1:${port}`);
    if (parsed === null) throw new Error('no proxy');
    return parsed;
  };

  test('a webhook arrives, and its certificate is checked for the name of the URL', async () => {
    const name = 'hooks.tenant.example';
    const receiver = await httpsServer((_incoming, response) => response.end(), [name]);
    const server = receiver.server;
    await new Promise<void>((resolve) => server.close(() => resolve()));
    await new Promise<void>((resolve) => server.listen(receiver.port, '127.0.0.2', resolve));
    const sender = testSender({
      ca: receiver.ca,
      route: makeProxyRoute(proxy()),
      resolve: async () => ['127.0.0.2'],
    });
    const result = await sender.send(request(`https://${name}:${receiver.port}/`));
    expect(result).toMatchObject({ statusCode: 200, remoteAddress: '127.0.0.2' });
    expect(outcomeOf(await sender.send(request(`https://else.example:${receiver.port}/`)))).toBe('tls');
  });

  test('it refuses addresses inside that our own guard lets through, in words of their own', async () => {
    const guard = makeAddressGuard({ allowCidrs: ['10.0.0.0/8', '127.0.0.0/8'] });
    const sender = testSender({ guard, route: makeProxyRoute(proxy()) });
    for (const url of ['http://10.0.0.1/', 'http://127.0.0.1:9999/'])
      expect(outcomeOf(await sender.send(request(url)))).toBe('proxy_refused');
    const gone = `http://127.0.0.2:${await closedPort()}/`;
    expect(outcomeOf(await sender.send(request(gone)))).toBe('unreachable');
  });

  test('a look finds it working and shut towards itself', async () => {
    expect(await lookAtProxy(proxy(), 2_000)).toEqual({ trouble: null, isOpenInside: false });
  });
});

async function accepts(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
