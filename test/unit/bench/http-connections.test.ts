import { createServer, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readHttpAnswer } from '../../../bench/driver/http-answer.ts';
import { openHttpConnections } from '../../../bench/driver/http-connections.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('the reader of answers', () => {
  test('waits for the last byte of the body', () => {
    expect(readHttpAnswer(OK.slice(0, -1))).toBeNull();
    expect(readHttpAnswer(OK)).toEqual({ status: 200, endIndex: OK.length });
    expect(readHttpAnswer(`${OK}HTTP/1.1 500 `)).toEqual({ status: 200, endIndex: OK.length });
  });

  test('refuses an answer whose end it cannot know', () => {
    expect(() => readHttpAnswer('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')).toThrow(/length/);
  });
});

describe('the connections of the driver', () => {
  test('no request goes over a connection that the server closed as idle, with a 408 that nobody asked for', async () => {
    const sockets: Socket[] = [];
    const port = await serve((socket) => {
      sockets.push(socket);
      socket.on('data', () => socket.write(OK));
    });
    const connections = await openHttpConnections(port, { initial: 3, max: 3 });
    onTestFinished(connections.close);
    for (const socket of sockets) {
      socket.end('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    const statuses = await Promise.all(
      Array.from({ length: 6 }, () => new Promise((done) => connections.send(Buffer.from('x'), done))),
    );
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200]);
  });

  test('a lost connection is status 0, and those that wait for one still go out', async () => {
    let taken = 0;
    const port = await serve((socket) => {
      socket.on('data', () => {
        taken += 1;
        if (taken === 1) socket.destroy();
        else socket.write(OK);
      });
    });
    const connections = await openHttpConnections(port, { initial: 1, max: 1 });
    onTestFinished(connections.close);
    const send = () => new Promise((done) => connections.send(Buffer.from('x'), done));
    expect(await Promise.all([send(), send(), send()])).toEqual([0, 200, 200]);
  });
});

async function serve(onSocket: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => onSocket(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
  });
  return (server.address() as { port: number }).port;
}
