import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { Agent, request as ask } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { graphPost, openGraphConnection } from '../../../src/platform/graph/graph-connection.ts';
import { readPastContinue } from '../../../src/platform/http/interim-responses.ts';
import { openTunnel } from '../../../src/platform/sender/proxy-tunnel.ts';
import { request, tcpServer, testSender } from './loopback-servers.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const PROCESSING = 'HTTP/1.1 102 Processing\r\n\r\n';
const HINTS = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n';

const answerOf = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

/** A server that answers each request on a connection with the next of these, in the given pieces. */
async function serverOf(answers: readonly (readonly string[])[]) {
  let requests = 0;
  return await tcpServer((socket: Socket) => {
    socket.setNoDelay(true);
    socket.on('data', async (chunk: Buffer) => {
      if (!chunk.toString().startsWith('POST') && !chunk.toString().startsWith('GET')) return;
      const pieces = answers[requests++ % answers.length] ?? [];
      for (const piece of pieces) {
        socket.write(piece);
        await turn();
        await turn();
      }
    });
  });
}

const cut = (text: string, at: readonly number[]) => {
  const places = [...new Set([0, ...at.map((place) => place % text.length), text.length])].toSorted(
    (a, b) => a - b,
  );
  return places.slice(1).map((end, index) => text.slice(places[index], end));
};

describe('a response', () => {
  test.each([
    ['100', [`${CONTINUE}${answerOf('ok')}`]],
    ['100 in a packet of its own', [CONTINUE, answerOf('ok')]],
    ['several', [`${CONTINUE}${CONTINUE}${PROCESSING}`, `${CONTINUE}${HINTS}${CONTINUE}${answerOf('ok')}`]],
    ['100 with headers', [`HTTP/1.1 100 Continue\r\nX-Of: proxy\r\nDate: x\r\n\r\n${answerOf('ok')}`]],
    ['100 without words', [`HTTP/1.1 100 \r\n\r\n${answerOf('ok')}`]],
    ['100 behind an empty line', [`\r\n${CONTINUE}${answerOf('ok')}`]],
    ['each byte by itself', [...`${CONTINUE}${HINTS}${CONTINUE}${answerOf('ok')}`]],
  ])('is read past %s', async (_, pieces) => {
    const { url } = await serverOf([pieces]);
    const result = await testSender().send(request(url));
    expect(result).toMatchObject({ outcome: 'response', statusCode: 200, body: Buffer.from('ok') });
  });

  test('is read wherever its packets end, and its connection serves the next request', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(CONTINUE, PROCESSING, HINTS), { maxLength: 4 }),
        fc.array(fc.nat(400), { maxLength: 6 }),
        fc.constantFrom('ok', CONTINUE, `${CONTINUE}x`, 'HTTP/1.1 100 Continue', ''),
        async (interim, places, body) => {
          const { url, connections, server, sockets } = await serverOf([
            cut(`${interim.join('')}${answerOf(body)}`, places),
          ]);
          const sender = testSender({ totalTimeoutMs: 20_000 });
          for (const _ of [1, 2, 3]) {
            // A connection is free again one turn after its response.
            await turn();
            expect(await sender.send(request(url))).toMatchObject({
              statusCode: 200,
              body: Buffer.from(body),
            });
          }
          expect(connections()).toBe(1);
          for (const socket of sockets) socket.destroy();
          server.close();
        },
      ),
      { numRuns: 40 },
    );
  });

  test('keeps every byte of a body that looks like another response', async () => {
    const body = `${CONTINUE}HTTP/1.1 100 Continue`;
    const head = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length * 2}\r\n\r\n`;
    const { url } = await serverOf([[head, body, body]]);
    expect(await testSender().send(request(url))).toMatchObject({ body: Buffer.from(body + body) });
  });

  test.each([
    ['nothing but 100', [CONTINUE]],
    ['no HTTP behind it', [`${CONTINUE}hello\r\n\r\n`]],
    ['a status of four digits', [`HTTP/1.1 1000 x\r\n\r\n${answerOf('ok')}`]],
    [
      'another protocol',
      [`HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n${answerOf('ok')}`],
    ],
  ])('of %s is none', async (_, pieces) => {
    const { url } = await serverOf([pieces]);
    const result = await testSender({ totalTimeoutMs: 500 }).send(request(url));
    expect(result.outcome).not.toBe('response');
  });
});

test('Node’s own fetch and any other client of undici read past it too', async () => {
  readPastContinue();
  const { url } = await serverOf([[CONTINUE, answerOf('ok')]]);
  expect(await (await fetch(url, { method: 'POST', body: 'x' })).text()).toBe('ok');
  const agent = new Agent({ pipelining: 1 });
  onTestFinished(() => agent.close());
  const { statusCode, body } = await ask(url, { dispatcher: agent, method: 'POST', body: 'x' });
  expect([statusCode, await body.text()]).toEqual([200, 'ok']);
});

test('a call of the platform is answered by what comes behind it', async () => {
  const { url } = await serverOf([[CONTINUE, answerOf('{"id":"7"}')]]);
  const connection = openGraphConnection({ graphUrl: url.replace(/\/$/, ''), graphVersion: 'v26.0' });
  onTestFinished(() => connection.agent.close());
  const call = { path: ['1', 'messages'], token: 't' };
  expect(await graphPost(connection, { ...call, body: { to: '1' } })).toEqual({ id: '7' });
});

test('a proxy may say it before it opens a tunnel', async () => {
  const { port } = await tcpServer((socket) => {
    socket.once('data', () => socket.write(`${CONTINUE}${HINTS}HTTP/1.1 200 OK\r\n\r\nhello`));
  });
  const proxy = { hostname: '127.0.0.1', port, authorization: null };
  const tunnel = await openTunnel(proxy, { address: '192.0.2.1', port: 443 }, AbortSignal.timeout(10_000));
  onTestFinished(() => void tunnel.destroy());
  const arrived = once(tunnel, 'data');
  tunnel.resume();
  const [chunk] = await arrived;
  expect(String(chunk)).toBe('hello');
});
