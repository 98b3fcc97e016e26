import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { httpServer, outcomeOf, request, tcpServer, testSender } from './loopback-servers.ts';

describe('connections', () => {
  test('are kept and used again, which the timings tell', async () => {
    const { url, connections } = await httpServer((_incoming, response) => response.end());
    const sender = testSender();
    expect((await sender.send(request(url))).timings.reused).toBe(false);
    await nextTurns();
    const second = await sender.send(request(url));
    expect(second).toMatchObject({
      statusCode: 200,
      remoteAddress: '127.0.0.1',
      timings: { reused: true, dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: expect.any(Number) },
    });
    expect(connections()).toBe(1);
  });

  test('are not used again when the receiver would close them within a second', async () => {
    const { url, connections } = await httpServer((_incoming, response) =>
      response.writeHead(200, { 'Keep-Alive': 'timeout=1' }).end(),
    );
    const sender = testSender();
    await sender.send(request(url));
    await nextTurns();
    expect((await sender.send(request(url))).timings.reused).toBe(false);
    expect(connections()).toBe(2);
  });

  test('are replaced when they are old', async () => {
    const { url } = await httpServer((_incoming, response) => response.end());
    const sender = testSender({ connectionMaxAgeMs: 50 });
    await sender.send(request(url));
    await sleep(80);
    expect(await sender.send(request(url))).toMatchObject({ statusCode: 200, timings: { reused: false } });
  });

  test('that the receiver closed while they were idle cost nothing when the close was seen', async () => {
    const { url, sockets } = await httpServer((_incoming, response) => response.end());
    const sender = testSender();
    await sender.send(request(url));
    for (const socket of sockets) socket.destroy();
    await sleep(50);
    expect(await sender.send(request(url))).toMatchObject({ statusCode: 200, timings: { reused: false } });
  });

  test('that the receiver closes at the second request are a reset, and the request is not repeated', async () => {
    let requests = 0;
    const { url } = await tcpServer((socket) => {
      let served = 0;
      socket.on('data', () => {
        requests += 1;
        served += 1;
        if (served === 1) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
        else socket.end();
      });
    });
    const sender = testSender();
    expect(outcomeOf(await sender.send(request(url)))).toBe(200);
    await nextTurns();
    expect(await sender.send(request(url))).toMatchObject({ errorClass: 'reset', timings: { reused: true } });
    expect(requests).toBe(2);
  });

  test('a failed request does not harm the next one to the same receiver', async () => {
    let requests = 0;
    const { url } = await httpServer((incoming, response) => {
      requests += 1;
      if (requests === 1) incoming.socket.resetAndDestroy();
      else response.end();
    });
    const sender = testSender();
    expect(outcomeOf(await sender.send(request(url)))).toBe('reset');
    expect(outcomeOf(await sender.send(request(url)))).toBe(200);
  });

  test('are used again when the receiver keeps them longer than a second', async () => {
    const { url } = await httpServer((_incoming, response) =>
      response.writeHead(200, { 'Keep-Alive': 'timeout=2' }).end(),
    );
    const sender = testSender();
    await sender.send(request(url));
    await nextTurns();
    expect((await sender.send(request(url))).timings.reused).toBe(true);
  });

  test('are dropped with the least recently used origin when there are too many', async () => {
    const server = () => httpServer((_incoming, response) => response.end());
    const [first, second, third] = await Promise.all([server(), server(), server()]);
    const sender = testSender({ maxOrigins: 2 });
    for (const { url } of [first, second, first, third]) {
      expect(outcomeOf(await sender.send(request(url)))).toBe(200);
      await nextTurns();
    }
    await expect.poll(() => second.sockets.size).toBe(0);
    expect([first.sockets.size, third.sockets.size]).toEqual([1, 1]);
    expect(outcomeOf(await sender.send(request(second.url)))).toBe(200);
  });

  test('are dropped with an origin that was not used for a while', async () => {
    const server = () => httpServer((_incoming, response) => response.end());
    const [idle, busy] = await Promise.all([server(), server()]);
    const sender = testSender({ originIdleMs: 50 });
    await sender.send(request(idle.url));
    await sleep(80);
    await sender.send(request(busy.url));
    await expect.poll(() => idle.sockets.size).toBe(0);
    expect(busy.sockets.size).toBe(1);
  });

  test('of an origin with a request in flight are kept, however many origins there are', async () => {
    const slow = await httpServer((_incoming, response) => setTimeout(() => response.end(), 200));
    const quick = await httpServer((_incoming, response) => response.end());
    const sender = testSender({ maxOrigins: 1 });
    const running = sender.send(request(slow.url));
    expect(outcomeOf(await sender.send(request(quick.url)))).toBe(200);
    expect(outcomeOf(await running)).toBe(200);
    await nextTurns();
    expect(await sender.send(request(slow.url))).toMatchObject({
      statusCode: 200,
      timings: { reused: true },
    });
  });
});

describe('many requests at once', () => {
  test('to one receiver all go side by side, as many as a tenant may allow, and none is left after close', async () => {
    // Nothing is answered before all are open, so a limit of its own would let this run into the time-out.
    const waiting: ServerResponse[] = [];
    const { url, sockets, connections } = await httpServer((_incoming, response) => {
      waiting.push(response);
      if (waiting.length === 500) for (const held of waiting) held.end();
    });
    const warnings: unknown[] = [];
    const onWarning = (warning: unknown) => warnings.push(warning);
    process.on('warning', onWarning);
    const sender = testSender({ totalTimeoutMs: 20_000, connectTimeoutMs: 20_000 });
    const results = await Promise.all(Array.from({ length: 500 }, () => sender.send(request(url))));
    process.off('warning', onWarning);
    expect(results.map(outcomeOf).every((outcome) => outcome === 200)).toBe(true);
    expect(connections()).toBe(500);
    expect(warnings).toEqual([]);
    await sender.close();
    await expect.poll(() => sockets.size).toBe(0);
  });

  test('leave connections for those that follow, and none that nobody uses', async () => {
    // It never closes a connection; what is closed, the sender closes a second before the receiver would.
    const { url, sockets, connections } = await tcpServer((socket) => {
      socket.on('data', () =>
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=3\r\n\r\n'),
      );
    });
    const sender = testSender({ totalTimeoutMs: 10_000 });
    const sendMany = () => Promise.all(Array.from({ length: 50 }, () => sender.send(request(url))));
    expect(new Set((await sendMany()).map(outcomeOf))).toEqual(new Set([200]));
    await nextTurns();
    const again = await sendMany();
    expect(again.every((result) => result.timings.reused)).toBe(true);
    expect(connections()).toBe(50);
    await expect.poll(() => sockets.size).toBe(0);
  });

  test('to an endpoint that hangs keep nothing from another endpoint of its origin', async () => {
    const hanging: ServerResponse[] = [];
    const { url } = await httpServer((incoming, response) => {
      if (incoming.url === '/hangs') hanging.push(response);
      else response.end();
    });
    const sender = testSender({ totalTimeoutMs: 20_000, connectTimeoutMs: 20_000 });
    let ended = 0;
    const stuck = Array.from({ length: 500 }, async () => {
      await sender.send(request(`${url}hangs`));
      ended += 1;
    });
    await expect.poll(() => hanging.length).toBe(500);
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => sender.send(request(`${url}healthy`))),
    );
    expect(answers.map(outcomeOf).every((outcome) => outcome === 200)).toBe(true);
    expect(ended).toBe(0);
    for (const held of hanging) held.end();
    await Promise.all(stuck);
  });

  test('that all fail leave no socket behind either', async () => {
    const { url, sockets } = await httpServer(() => undefined);
    const sender = testSender();
    const results = await Promise.all(
      Array.from({ length: 1_000 }, () => sender.send({ ...request(url), timeoutMs: 400 })),
    );
    expect(new Set(results.map(outcomeOf))).toEqual(new Set(['timeout']));
    await expect.poll(() => sockets.size).toBe(0);
  });

  test('to a hanging receiver do not delay another one', async () => {
    const hanging = await httpServer(() => undefined);
    const healthy = await httpServer((_incoming, response) => response.end());
    const sender = testSender();
    let ended = 0;
    const stuck = Array.from({ length: 300 }, () =>
      sender.send({ ...request(hanging.url), timeoutMs: 60_000 }).finally(() => {
        ended += 1;
      }),
    );
    await expect.poll(() => hanging.sockets.size).toBeGreaterThan(0);
    expect(outcomeOf(await sender.send({ ...request(healthy.url), timeoutMs: 60_000 }))).toBe(200);
    expect(ended).toBe(0);
    await expect.poll(() => hanging.sockets.size).toBe(300);
    for (const socket of hanging.sockets) socket.destroy();
    await Promise.all(stuck);
  });
});

describe('close', () => {
  test('waits for what is in flight and refuses what comes after', async () => {
    const { url } = await httpServer((_incoming, response) => setTimeout(() => response.end('late'), 150));
    const sender = testSender();
    const running = sender.send(request(url));
    await sleep(30);
    const closing = sender.close();
    expect(await sender.send(request(url))).toMatchObject({ errorClass: 'aborted' });
    await closing;
    expect(await running).toMatchObject({ statusCode: 200, body: Buffer.from('late') });
  });

  test('may be called twice', async () => {
    const sender = testSender();
    await sender.close();
    await sender.close();
  });
});

/** A connection is free again one turn of the event loop after its response ended. */
async function nextTurns(): Promise<void> {
  await sleep(20);
}
