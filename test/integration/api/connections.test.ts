import { connect, type Socket } from 'node:net';
import fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { limitConnections } from '../../../src/api/shares/client-shares.ts';

const MAX_CONNECTIONS = 20;

test('connections that say nothing make room for those that ask; those that are being answered stay', async () => {
  const answer = Promise.withResolvers<string>();
  const app = fastify();
  onTestFinished(() => app.close());
  limitConnections(app, MAX_CONNECTIONS);
  app.get('/fast', () => 'fast');
  app.get('/slow', () => answer.promise);
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const open = () => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    return socket.resume();
  };
  const ask = (socket: Socket, path: string) => {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))));
  };
  const slow = ask(open(), '/slow');
  // What has asked before and is silent now gives way too.
  const former = open();
  expect(await ask(former, '/fast')).toContain('200 OK');
  const silent = Array.from({ length: 3 * MAX_CONNECTIONS }, open);
  const isClosed = (socket: Socket) => socket.destroyed || socket.readableEnded;
  await expect.poll(() => silent.filter(isClosed).length).toBeGreaterThan(2 * MAX_CONNECTIONS - 2);
  await expect.poll(() => isClosed(former)).toBe(true);
  expect(await ask(open(), '/fast')).toContain('200 OK');
  answer.resolve('slow');
  expect(await slow).toContain('200 OK');
});
