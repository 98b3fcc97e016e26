import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
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

describe('a response', () => {
  test('is returned with status, headers, body and timings, and the receiver got exactly our bytes', async () => {
    const received: {
      method?: string | undefined;
      url?: string | undefined;
      headers?: NodeJS.Dict<string | string[]>;
      body: string;
    } = { body: '' };
    const { url, port } = await httpServer((incoming, response) => {
      Object.assign(received, { method: incoming.method, url: incoming.url, headers: incoming.headers });
      incoming.setEncoding('utf8').on('data', (chunk: string) => {
        received.body += chunk;
      });
      incoming.on('end', () =>
        response.writeHead(201, { 'X-Answer': 'yes', 'Set-Cookie': ['a=1', 'b=2'] }).end('thanks'),
      );
    });
    const result = await testSender().send({
      ...request(`${url}hook?a=b`),
      headers: { 'webhook-id': 'evt_1' },
    });
    expect(received).toMatchObject({ method: 'POST', url: '/hook?a=b', body: '{"hello":"wörld"}' });
    expect(received.headers).toMatchObject({
      host: `127.0.0.1:${port}`,
      'webhook-id': 'evt_1',
      'content-length': '18',
    });
    expect(result).toMatchObject({
      outcome: 'response',
      statusCode: 201,
      headers: { 'x-answer': 'yes', 'set-cookie': 'a=1, b=2' },
      body: Buffer.from('thanks'),
      retryAfterMs: null,
      remoteAddress: '127.0.0.1',
      timings: {
        dnsMs: null,
        connectMs: expect.any(Number),
        tlsMs: null,
        firstByteMs: expect.any(Number),
        reused: false,
      },
    });
    expect(result.timings.totalMs).toBeGreaterThanOrEqual(result.timings.firstByteMs ?? Number.NaN);
  });

  test.each([200, 204, 304, 400, 401, 404, 410, 429, 500, 503])(
    'of status %i is a response',
    async (status) => {
      const { url } = await httpServer((_incoming, response) => response.writeHead(status).end());
      expect(outcomeOf(await testSender().send(request(url)))).toBe(status);
    },
  );

  test.each([301, 302, 303, 307, 308])('of status %i is not followed', async (status) => {
    let visits = 0;
    const target = await httpServer((_incoming, response) => {
      visits += 1;
      response.end();
    });
    const { url } = await httpServer((_incoming, response) =>
      response.writeHead(status, { location: target.url }).end(),
    );
    const result = await testSender().send(request(url));
    expect(outcomeOf(result)).toBe(status);
    expect(visits).toBe(0);
  });

  test('tells how long the receiver asks to wait', async () => {
    const { url } = await httpServer((_incoming, response) =>
      response.writeHead(503, { 'Retry-After': '120' }).end(),
    );
    expect(await testSender().send(request(url))).toMatchObject({ statusCode: 503, retryAfterMs: 120_000 });
  });

  test('keeps its first 4 KiB', async () => {
    const { url } = await httpServer((_incoming, response) =>
      response.end('x'.repeat(4_096) + 'y'.repeat(10_000)),
    );
    const result = await testSender().send(request(url));
    expect(result).toMatchObject({
      statusCode: 200,
      body: Buffer.from('x'.repeat(4_096)),
    });
  });

  test('without end is cut, and its connection is given up', async () => {
    const { url, sockets } = await httpServer((_incoming, response) => {
      const timer = setInterval(() => response.write(Buffer.alloc(16_384, 'z')), 1);
      response.on('close', () => clearInterval(timer));
    });
    const result = await testSender().send(request(url));
    expect(result).toMatchObject({ statusCode: 200, body: Buffer.alloc(4_096, 'z') });
    await expect.poll(() => sockets.size).toBe(0);
  });

  test('may be preceded by an early hint', async () => {
    const { url } = await rawAnswer(
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    );
    expect(await testSender().send(request(url))).toMatchObject({
      statusCode: 200,
      headers: { 'content-length': '2' },
    });
  });

  test('may have headers with hostile names', async () => {
    const { url } = await rawAnswer(
      'HTTP/1.1 200 OK\r\n__proto__: x\r\nconstructor: y\r\nContent-Length: 0\r\n\r\n',
    );
    const result = await testSender().send(request(url));
    expect(result).toMatchObject({ statusCode: 200, headers: { constructor: 'y' } });
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  test('that ends with its connection is complete', async () => {
    const { url } = await rawAnswer('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it', (socket) =>
      socket.end(),
    );
    expect(await testSender().send(request(url))).toMatchObject({
      statusCode: 200,
      body: Buffer.from('all of it'),
    });
  });
});

describe('the deadline', () => {
  test('ends a receiver that never answers', async () => {
    const { url, sockets } = await httpServer(() => undefined);
    const result = await testSender().send({ ...request(url), timeoutMs: 200 });
    expect(result).toMatchObject({ errorClass: 'timeout', message: 'The receiver did not respond in time.' });
    expect(result.timings).toMatchObject({ connectMs: expect.any(Number), firstByteMs: null });
    await expect.poll(() => sockets.size).toBe(0);
  });

  test('ends a receiver that sends its headers byte by byte', async () => {
    const { url } = await tcpServer((socket) =>
      drip(socket, 'HTTP/1.1 200 OK\r\nX-Slow: '.padEnd(1_000, 'a')),
    );
    expect(await testSender().send({ ...request(url), timeoutMs: 300 })).toMatchObject({
      errorClass: 'timeout',
    });
  });

  test('ends a body that drips for ever, although its status came in time', async () => {
    const { url } = await httpServer((_incoming, response) => {
      response.writeHead(200);
      drip(response, 'x'.repeat(1_000));
    });
    const result = await testSender().send({ ...request(url), timeoutMs: 2_500 });
    expect(result).toMatchObject({
      errorClass: 'timeout',
      message: 'The response was not complete in time.',
    });
    expect(result.timings.firstByteMs).toEqual(expect.any(Number));
  });

  test('a connection that is not made in time is a timeout of its own, before the total one', async () => {
    // A TLS handshake that is never answered: TCP connects, the rest of the connection does not come.
    const { port } = await tcpServer(() => undefined);
    const result = await testSender({ connectTimeoutMs: 150 }).send(request(`https://127.0.0.1:${port}/`));
    expect(result).toMatchObject({ errorClass: 'timeout', message: 'The connection was not made in time.' });
    expect(result.timings).toMatchObject({ connectMs: expect.any(Number), tlsMs: null });
  });

  test('covers a name server that does not answer', async () => {
    const resolve = () => new Promise<string[]>(() => undefined);
    const sender = testSender({ resolve, connectTimeoutMs: 150 });
    expect(await sender.send(request('http://receiver.example/'))).toMatchObject({ errorClass: 'timeout' });
  });
});

describe('trouble with the receiver has a class of its own', () => {
  test('refused: nothing listens', async () => {
    const result = await testSender().send(request(`http://127.0.0.1:${await closedPort()}/`));
    expect(result).toMatchObject({ errorClass: 'refused', remoteAddress: null });
  });

  test('refused: nothing listens on any address of the name', async () => {
    const sender = testSender({ resolve: async () => ['127.0.0.1', '127.0.0.2'] });
    expect(outcomeOf(await sender.send(request(`http://name.example:${await closedPort()}/`)))).toBe(
      'refused',
    );
  });

  test('reset: the connection is reset without an answer', async () => {
    const { url } = await tcpServer((socket) => socket.once('data', () => socket.resetAndDestroy()));
    expect(outcomeOf(await testSender().send(request(url)))).toBe('reset');
  });

  test('closed: the connection ends without an answer', async () => {
    const { url } = await tcpServer((socket) => socket.once('data', () => socket.end()));
    expect(outcomeOf(await testSender().send(request(url)))).toBe('closed');
  });

  test.each([
    ['in the headers', 'HTTP/1.1 200 OK\r\nX-Half'],
    ['in the body', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'],
    ['in the body, announced', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\nhalf'],
    ['in a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha'],
    [
      'in a chunk, announced',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha',
    ],
  ])('closed: the connection ends %s', async (_where, answer) => {
    const { url } = await rawAnswer(answer, (socket) => socket.end());
    expect(outcomeOf(await testSender().send(request(url)))).toBe('closed');
  });

  test.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['a malformed status', 'HTTP/1.1 abc\r\n\r\n'],
    ['a malformed header', 'HTTP/1.1 200 OK\r\nno colon here\r\n\r\n'],
    ['a malformed chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
    [
      'a switch of protocols',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    ],
  ])('protocol: the answer is %s', async (_what, answer) => {
    const { url } = await rawAnswer(answer);
    expect(outcomeOf(await testSender().send(request(url)))).toBe('protocol');
  });

  test.each([
    ['two lengths', 'Content-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['a length and chunks', 'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ])('an answer with %s, which could be read in two ways, is no response', async (_what, rest) => {
    const { url } = await rawAnswer(`HTTP/1.1 200 OK\r\n${rest}`);
    expect(await testSender().send(request(url))).toMatchObject({ outcome: 'error' });
  });

  test('too_large_header: the headers are larger than 16 KiB', async () => {
    const { url } = await rawAnswer(`HTTP/1.1 200 OK\r\nX-Big: ${'a'.repeat(17 * 1_024)}\r\n\r\n`);
    expect(outcomeOf(await testSender().send(request(url)))).toBe('too_large_header');
    const endless = await tcpServer((socket) => {
      socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\n${'X-More: a\r\n'.repeat(10_000)}`));
    });
    expect(outcomeOf(await testSender().send(request(endless.url)))).toBe('too_large_header');
  });

  test('other: a header of ours cannot be sent', async () => {
    const { url } = await httpServer((_incoming, response) => response.end());
    const result = await testSender().send({ ...request(url), headers: { 'x-bad': 'a\r\nb: c' } });
    expect(outcomeOf(result)).toBe('other');
  });

  test('dns: the name does not resolve', async () => {
    const result = await testSender().send(request('http://does-not-exist.invalid/'));
    expect(result).toMatchObject({
      errorClass: 'dns',
      timings: { dnsMs: expect.any(Number), connectMs: null },
    });
  });
});

describe('TLS', () => {
  const answer = (_incoming: unknown, response: { end(text: string): unknown }) => response.end('ok');

  test('an unknown certificate is refused', async () => {
    const { url } = await httpsServer(answer, ['localhost']);
    const result = await testSender().send(request(url));
    expect(result).toMatchObject({
      errorClass: 'tls',
      message: expect.stringMatching(/\((DEPTH_ZERO_)?SELF_SIGNED_CERT.*\)/),
    });
  });

  test('a certificate for another name is refused', async () => {
    const { port, ca } = await httpsServer(answer, ['other.example']);
    const sender = testSender({ ca, resolve: async () => ['127.0.0.1'] });
    const result = await sender.send(request(`https://receiver.example:${port}/`));
    expect(result).toMatchObject({ errorClass: 'tls', message: expect.stringContaining('ALTNAME_INVALID') });
  });

  test('a trusted certificate for the name is accepted, its handshake timed and its session resumed', async () => {
    const resumed: boolean[] = [];
    const { port, ca } = await httpsServer(
      (incoming, response) => {
        resumed.push((incoming.socket as import('node:tls').TLSSocket).isSessionReused());
        response.writeHead(200, { connection: 'close' }).end('ok');
      },
      ['receiver.example'],
    );
    const sender = testSender({ ca, resolve: async () => ['127.0.0.1'] });
    const url = `https://receiver.example:${port}/`;
    expect(await sender.send(request(url))).toMatchObject({
      statusCode: 200,
      timings: {
        dnsMs: expect.any(Number),
        connectMs: expect.any(Number),
        tlsMs: expect.any(Number),
        reused: false,
      },
    });
    expect(outcomeOf(await sender.send(request(url)))).toBe(200);
    expect(resumed).toEqual([false, true]);
  });

  test('a plain server behind an https URL is a TLS error', async () => {
    const { port } = await httpServer((_incoming, response) => response.end());
    expect(outcomeOf(await testSender().send(request(`https://127.0.0.1:${port}/`)))).toBe('tls');
  });

  test('a connection that ends during the handshake is a reset', async () => {
    const { port } = await tcpServer((socket) => socket.once('data', () => socket.destroy()));
    expect(outcomeOf(await testSender().send(request(`https://127.0.0.1:${port}/`)))).toBe('reset');
  });
});

/** Writes one character every 100 ms for as long as the other side listens. */
async function drip(
  target: { write(text: string): unknown; destroyed: boolean },
  text: string,
): Promise<void> {
  for (const character of text) {
    if (target.destroyed) return;
    target.write(character);
    await sleep(100);
  }
}
