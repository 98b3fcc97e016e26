import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { addKey, signed, startTestApi } from './api-harness.ts';

test('a process that is about to stop still answers, and asks clients to come back over new connections', async () => {
  let isDraining = false;
  const api = await startTestApi(async () => ({ isDraining: () => isDraining }));
  const { authorization } = await addKey(api.database);
  const ask = async () => await api.app.inject({ url: '/me', headers: { authorization } });
  expect((await ask()).headers.connection).toBe('keep-alive');
  isDraining = true;
  const answer = await ask();
  expect([answer.statusCode, answer.headers.connection]).toEqual([200, 'close']);
});

/** A request of which the first half is sent before the server closes, and the rest then. */
async function halfBefore(port: number, request: string) {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  const half = Math.floor(request.indexOf('\r\n\r\n') / 2);
  socket.write(request.slice(0, half));
  return async () => {
    socket.write(request.slice(half));
    await once(socket, 'close');
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    return { head: head.toLowerCase(), body };
  };
}

test('once it closes, the External API answers 503 that can be repeated, and upstream webhooks are still taken', async () => {
  const api = await startTestApi();
  const { authorization } = await addKey(api.database);
  const port = Number(new URL(await api.app.listen({ host: '127.0.0.1', port: 0 })).port);
  const me = await halfBefore(port, `GET /me HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`);
  const signature = signed('x')['x-hub-signature-256'];
  const ingress = await halfBefore(
    port,
    `POST /upstream/webhook HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: ${signature}\r\nContent-Length: 1\r\n\r\nx`,
  );
  await new Promise((resolve) => setTimeout(resolve, 100));
  const closed = api.app.close();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const [refused, stored] = await Promise.all([me(), ingress()]);
  expect(refused.head).toMatch(/^http\/1\.1 503 /);
  expect(refused.head).toContain('retry-after: 1');
  expect(refused.head).toContain('connection: close');
  expect(JSON.parse(refused.body).error.code).toBe('service_unavailable');
  expect(stored.head).toMatch(/^http\/1\.1 200 /);
  await closed;
});
