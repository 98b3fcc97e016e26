import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { generate } from 'selfsigned';
import { onTestFinished } from 'vitest';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import {
  type HttpSenderOptions,
  makeHttpSender,
  type SendResult,
} from '../../../src/platform/sender/http-sender.ts';

/** A sender that may reach loopback over http; closed when the test ends. */
export function testSender(options: Partial<HttpSenderOptions> = {}) {
  const sender = makeHttpSender({
    guard: makeAddressGuard({ allowCidrs: ['127.0.0.0/8', '::1/128'] }),
    allowHttp: true,
    connectTimeoutMs: 2_000,
    totalTimeoutMs: 2_000,
    ...options,
  });
  onTestFinished(() => sender.close());
  return sender;
}

export type TestServer = {
  url: string;
  port: number;
  server: Server;
  sockets: Set<Socket>;
  connections: () => number;
};

export async function httpServer(listener: RequestListener): Promise<TestServer> {
  return listen(createHttpServer(listener));
}

/** A server of its own certificate authority of one, valid for the names given. */
export async function httpsServer(
  listener: RequestListener,
  names: string[],
): Promise<TestServer & { ca: string }> {
  const altNames = names.map((value) => ({ type: 2 as const, value }));
  const { private: key, cert } = await generate([{ name: 'commonName', value: names[0] ?? 'x' }], {
    keySize: 2048,
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames },
    ],
  });
  return { ...(await listen(createHttpsServer({ key, cert }, listener), 'https')), ca: cert };
}

/** A server that speaks whatever `onConnection` writes. */
export async function tcpServer(onConnection: (socket: Socket) => void): Promise<TestServer> {
  return listen(createTcpServer(onConnection));
}

/** A server that reads one request and answers with these bytes. */
export function rawAnswer(
  answer: string,
  then: (socket: Socket) => void = () => undefined,
): Promise<TestServer> {
  return tcpServer((socket) => {
    socket.once('data', () => {
      socket.write(answer);
      then(socket);
    });
  });
}

async function listen(server: Server, protocol = 'http'): Promise<TestServer> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `${protocol}://127.0.0.1:${port}/`, port, server, sockets, connections: () => connections };
}

/** A port on which nothing listens. */
export async function closedPort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** A POST of a small JSON body. */
export function request(url: string) {
  return { url, headers: { 'content-type': 'application/json' }, body: Buffer.from('{"hello":"wörld"}') };
}

/** `status` or `errorClass`, which is what most tests are about. */
export function outcomeOf(result: SendResult): number | string {
  return result.outcome === 'response' ? result.statusCode : result.errorClass;
}
