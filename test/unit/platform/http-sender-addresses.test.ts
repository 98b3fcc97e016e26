import { describe, expect, test } from 'vitest';
import { makeAddressGuard } from '../../../src/platform/http/outbound-url.ts';
import { httpServer, outcomeOf, request, testSender } from './loopback-servers.ts';

const publicOnly = makeAddressGuard({ allowCidrs: [] });

describe('a sender without an allow-list', () => {
  test.each([
    '127.0.0.1',
    '0x7f.1',
    '2130706433',
    '017700000001',
    '127.1',
    '0',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::1]',
    '１２７.０.０.１',
  ])('does not connect to %s', async (host) => {
    const { port, connections } = await httpServer((_incoming, response) => response.end());
    const result = await testSender({ guard: publicOnly }).send(request(`http://${host}:${port}/`));
    expect(outcomeOf(result)).toBe('blocked_address');
    expect(connections()).toBe(0);
  });

  test.each(['localhost', 'localhost.'])('does not connect to %s', async (host) => {
    const { port, connections } = await httpServer((_incoming, response) => response.end());
    const result = await testSender({ guard: publicOnly }).send(request(`http://${host}:${port}/`));
    expect(outcomeOf(result)).toBe('dns');
    expect(connections()).toBe(0);
  });

  test('fails alike for names that lead inside and for those that do not exist; operators get the cause', async () => {
    const causes: object[] = [];
    const send = async (resolve: () => Promise<string[]>) => {
      const sender = testSender({
        guard: publicOnly,
        resolve,
        onUnusableName: (cause) => causes.push(cause),
      });
      const result = await sender.send(request('http://crm.internal.example/'));
      return result.outcome === 'error' ? [result.errorClass, result.message] : result;
    };
    const notFound = Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' });
    const missing = await send(() => Promise.reject(notFound));
    expect(missing).toEqual(['dns', expect.any(String)]);
    expect(await send(async () => ['10.20.30.40'])).toEqual(missing);
    expect(await send(async () => [])).toEqual(missing);
    const host = 'crm.internal.example';
    expect(causes).toEqual([
      { host, reason: 'ENOTFOUND' },
      { host, reason: 'blocked_address' },
      { host, reason: 'no address' },
    ]);
  });

  test('does not connect to a name of which one address is inside, nor tells that address', async () => {
    const { port, connections } = await httpServer((_incoming, response) => response.end());
    const resolve = async () => ['93.184.215.14', '127.0.0.1'];
    const result = await testSender({ guard: publicOnly, resolve }).send(
      request(`http://rebind.example:${port}/`),
    );
    expect(result).toMatchObject({
      errorClass: 'dns',
      timings: { dnsMs: expect.any(Number), connectMs: null },
    });
    expect(JSON.stringify(result)).not.toContain('127.0.0.1');
    expect(connections()).toBe(0);
  });

  test('checks again at every connection, so that a name that moves inside is refused then', async () => {
    const { port } = await httpServer((_incoming, response) =>
      response.writeHead(200, { connection: 'close' }).end(),
    );
    let address = '127.0.0.1';
    // Loopback stands for the outside here: 127.0.0.1 is allowed, 127.0.0.2 is not.
    const guard = makeAddressGuard({ allowCidrs: ['127.0.0.1/32'] });
    const sender = testSender({ guard, resolve: async () => [address] });
    expect(outcomeOf(await sender.send(request(`http://rebind.example:${port}/`)))).toBe(200);
    address = '127.0.0.2';
    expect(outcomeOf(await sender.send(request(`http://rebind.example:${port}/`)))).toBe('dns');
  });

  test('does not follow a redirect inside', async () => {
    const inside = await httpServer((_incoming, response) => response.end());
    const outside = await httpServer((_incoming, response) =>
      response.writeHead(307, { location: `http://127.0.0.2:${inside.port}/` }).end(),
    );
    const guard = makeAddressGuard({ allowCidrs: ['127.0.0.1/32'] });
    expect(outcomeOf(await testSender({ guard }).send(request(outside.url)))).toBe(307);
    expect(inside.connections()).toBe(0);
  });

  test('connects to exactly the address that it checked', async () => {
    const { port } = await httpServer((_incoming, response) => response.end());
    let lookups = 0;
    const resolve = async () => {
      lookups += 1;
      return lookups === 1 ? ['127.0.0.1'] : ['127.0.0.9'];
    };
    const result = await testSender({ resolve }).send(request(`http://name.example:${port}/`));
    expect(result).toMatchObject({ statusCode: 200, remoteAddress: '127.0.0.1' });
    expect(lookups).toBe(1);
  });

  test('moves on to the next address when the first refuses', async () => {
    const { port } = await httpServer((_incoming, response) => response.end());
    const resolve = async () => ['127.0.0.3', '127.0.0.1'];
    const result = await testSender({ resolve }).send(request(`http://name.example:${port}/`));
    expect(result).toMatchObject({ statusCode: 200, remoteAddress: '127.0.0.1' });
  });

  test('a name without any address is a DNS error', async () => {
    expect(
      outcomeOf(await testSender({ resolve: async () => [] }).send(request('http://none.example/'))),
    ).toBe('dns');
  });
});

describe('what the allow-list and http setting permit', () => {
  test('an allowed network is reached by name and by address', async () => {
    const { port } = await httpServer((_incoming, response) => response.end());
    const sender = testSender();
    for (const host of ['127.0.0.1', 'localhost', '2130706433']) {
      expect(outcomeOf(await sender.send(request(`http://${host}:${port}/`))), host).toBe(200);
    }
  });

  test('http is refused unless it is allowed', async () => {
    const { url, connections } = await httpServer((_incoming, response) => response.end());
    expect(outcomeOf(await testSender({ allowHttp: false }).send(request(url)))).toBe('invalid_url');
    expect(connections()).toBe(0);
  });

  test.each([
    '',
    'nonsense',
    'file:///etc/passwd',
    'http://user:secret@127.0.0.1/',
    'http://127.0.0.1/\u0000',
  ])('the URL %j is invalid and its error does not repeat it', async (url) => {
    const result = await testSender().send(request(url));
    expect(result).toMatchObject({ errorClass: 'invalid_url', remoteAddress: null });
    expect(JSON.stringify(result)).not.toContain('secret');
  });
});
