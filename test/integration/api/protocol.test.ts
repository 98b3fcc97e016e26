import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { makeApiMetrics } from '../../../src/api/api-metrics.ts';
import { ERROR_CODES } from '../../../src/api/errors/error-codes.ts';
import { openDatabase } from '../../../src/platform/postgres/database.ts';
import { apiOfFile, freshKeyHolder, PUBLIC_URL, startTestApi, testConfig } from './api-harness.ts';
import { startPostgresProxy } from './postgres-proxy.ts';

const ERROR_SHAPE = {
  error: {
    type: expect.stringMatching(/^[a-z_]+$/),
    code: expect.stringMatching(/^[a-z_]+$/),
    message: expect.any(String),
    param: null,
    docUrl: expect.stringContaining(`${PUBLIC_URL}/docs/errors#`),
    requestId: expect.stringMatching(/^req_[0-9a-f]{24}$/),
  },
};

/** For the tests that neither set it up otherwise nor harm it. */
const api = apiOfFile();

/** Sends bytes as they are and returns the whole answer. */
async function sendRaw(bytes: string | Buffer): Promise<string> {
  const address = api.app.server.listening
    ? `http://127.0.0.1:${(api.app.server.address() as { port: number }).port}`
    : await api.app.listen({ host: '127.0.0.1', port: 0 });
  const { port, hostname } = new URL(address);
  return await new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let answer = '';
    socket.setTimeout(5000, () => socket.destroy(new Error(`no answer, only: ${answer}`)));
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

function parseAnswer(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body };
}

describe('every error', () => {
  test('has one shape, a request id that is in the header too, and its code in the documentation', async () => {
    const { authorization } = await freshKeyHolder(api.database);
    const requests = [
      ['GET', '/nothing', 404, 'route_not_found'],
      ['GET', '/api/external', 404, 'route_not_found'],
      ['GET', '/me/', 404, 'route_not_found'],
      ['GET', '//me', 404, 'route_not_found'],
      ['GET', '/ME', 404, 'route_not_found'],
      ['GET', '/api/external/messages//media', 404, 'not_found'],
      ['GET', '/api/external/messages/a%2Fb/media', 404, 'not_found'],
      ['GET', '/api/external/messages/%2e%2e%2f/media', 404, 'not_found'],
      ['GET', '/%zz', 400, 'invalid_request'],
      ['GET', '/api/external/messages/%E0%A4%A/media', 400, 'invalid_request'],
      ['POST', '/%zz', 400, 'invalid_request'],
      ['POST', '/me', 405, 'method_not_allowed'],
      ['DELETE', '/%zz', 400, 'invalid_request'],
    ] as const;
    for (const [method, url, status, code] of requests) {
      const response = await api.app.inject({ method, url, headers: { authorization } });
      expect([url, response.statusCode, response.json().error?.code]).toEqual([url, status, code]);
      expect(response.json()).toEqual(ERROR_SHAPE);
      expect(response.headers['x-request-id']).toBe(response.json().error.requestId);
      expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
      expect(response.headers['cache-control']).toBe('no-store');
    }
  });

  test('that Node raises before there is a request has it too', async () => {
    const requests: [string, number, string][] = [
      ['nonsense\r\n\r\n', 400, 'invalid_request'],
      ['GET / HTTP/1.1\r\n\r\n', 400, 'invalid_request'],
      [`GET /?${'x'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431, 'headers_too_large'],
      [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
      [
        'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
        400,
        'invalid_request',
      ],
    ];
    for (const [bytes, status, code] of requests) {
      const answer = parseAnswer(await sendRaw(bytes));
      expect([bytes.slice(0, 40), answer.status]).toEqual([bytes.slice(0, 40), status]);
      expect(JSON.parse(answer.body)).toEqual(ERROR_SHAPE);
      expect(JSON.parse(answer.body).error.code).toBe(code);
    }
  });

  test('of the server says nothing of what is inside, and the cause is not lost', async () => {
    const lines: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    const failing = await startTestApi(async () => ({ logger }));
    const { authorization } = await freshKeyHolder(failing.database);
    await failing.database.raw('alter table conversations rename to hidden_conversations');
    const response = await failing.app.inject({
      url: '/api/external/conversations',
      headers: { authorization },
    });
    expect(response.statusCode).toBe(500);
    expect(response.json()).toEqual(ERROR_SHAPE);
    expect(response.body).not.toMatch(/conversations|select|relation/);
    const line = lines.find((one) => one.includes(response.json().error.requestId)) ?? '';
    expect(line).toContain('relation');
    expect(line).not.toContain(authorization.slice(20));
  });

  test('code is described on the page that docUrl leads to', async () => {
    const page = await api.app.inject('/docs/errors');
    for (const code of Object.keys(ERROR_CODES)) expect(page.body).toContain(`<h2 id="${code}">`);
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'self'; /);
    expect(page.body).not.toMatch(/<script|style="/);
  });
});

describe('methods', () => {
  test('that a path does not answer get 405 and the list of those it does, before a body is read', async () => {
    const paths: [string, string][] = [
      ['/me', 'GET, HEAD'],
      ['/api/external/messages/1/media', 'GET, HEAD'],
      ['/upstream/webhook', 'GET, HEAD, POST'],
      ['/healthz?x=1', 'GET, HEAD'],
    ];
    for (const [url, allow] of paths) {
      for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
        const payload = '{"not json';
        const headers = { 'content-type': 'application/json' };
        const response = await api.app.inject({ method, url, headers, payload });
        expect([method, url, response.statusCode, response.headers.allow]).toEqual([method, url, 405, allow]);
        expect(response.json().error.code).toBe('method_not_allowed');
      }
    }
  });

  test('that HTTP knows and nobody here serves get an answer of the usual shape', async () => {
    for (const method of ['PROPFIND', 'TRACE', 'QUERY', 'LOCK']) {
      const answer = parseAnswer(
        await sendRaw(`${method} /me HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
      );
      expect([method, [404, 405].includes(answer.status)]).toEqual([method, true]);
      expect(JSON.parse(answer.body)).toEqual(ERROR_SHAPE);
    }
  });

  test('HEAD answers as GET does, without the body', async () => {
    const { authorization } = await freshKeyHolder(api.database);
    for (const url of [
      '/',
      '/healthz',
      '/docs/errors',
      '/me',
      '/api/external/test',
      '/api/external/conversations',
      '/x',
    ]) {
      const get = await api.app.inject({ method: 'GET', url, headers: { authorization } });
      const head = await api.app.inject({ method: 'HEAD', url, headers: { authorization } });
      expect([url, head.statusCode, head.body]).toEqual([url, get.statusCode, '']);
      expect(head.headers['content-length']).toBe(get.headers['content-length']);
    }
  });
});

describe('every answer', () => {
  test('has the security headers and a request id of ours, whatever id came in', async () => {
    const ids = new Set<unknown>();
    for (const url of [
      '/',
      '/me',
      '/nothing',
      '/healthz',
      '/api/external/test',
      '/upstream/webhook',
      '/%zz',
    ]) {
      const headers = { 'x-request-id': 'mine', 'request-id': 'mine' };
      const response = await api.app.inject({ url, headers });
      expect(response.headers['x-content-type-options']).toBe('nosniff');
      expect(response.headers['referrer-policy']).toBe('no-referrer');
      expect(response.headers['content-security-policy']).toContain("default-src 'none'");
      expect(response.headers['x-request-id']).toMatch(/^req_/);
      expect(response.headers['strict-transport-security']).toBeUndefined();
      ids.add(response.headers['x-request-id']);
    }
    expect(ids.size).toBe(7);
  });

  test('does not believe X-Forwarded headers of anybody', async () => {
    const response = await api.app.inject({ url: '/', headers: { 'x-forwarded-proto': 'https' } });
    expect(response.headers['strict-transport-security']).toBeUndefined();
  });
});

describe('health', () => {
  test('/readyz names what does not answer; without the object store media waits and everything else is served', async () => {
    // A machine that is busy can take longer than a check is waited for.
    await expect
      .poll(async () => {
        const ready = await api.app.inject('/readyz');
        return [ready.statusCode, ready.json()];
      })
      .toEqual([
        200,
        { status: 'ready', checks: { database: 'ok', schema: 'ok', objectStore: 'ok', clock: 'ok' } },
      ]);
    let now = 0;
    const away = async () => {
      throw new Error('away');
    };
    const broken = await startTestApi(async () => ({
      now: () => now,
      objectStore: {
        ensureBucket: away,
        put: away,
        getRange: away,
        stat: away,
        remove: away,
        versioning: away,
        list: () => Readable.from([]),
        close: () => {},
      },
    }));
    const unready = await broken.app.inject('/readyz');
    expect([unready.statusCode, unready.json()]).toMatchObject([
      200,
      { status: 'ready', checks: { database: 'ok', schema: 'ok', objectStore: 'failed' } },
    ]);
    const temporal = { said: 'failed' as 'ok' | 'failed' };
    const beside = await startTestApi(async () => ({
      now: () => now,
      workerHealth: async () => ({ checks: { temporal: temporal.said } }),
    }));
    const checks = async () => (await beside.app.inject('/readyz')).json();
    expect(await checks()).toMatchObject({ status: 'ready', checks: { temporal: 'failed' } });
    now = 1_000;
    temporal.said = 'ok';
    expect(await checks()).toMatchObject({ status: 'ready', checks: { temporal: 'ok' } });
    now = 2_000;
    expect((await broken.app.inject('/healthz')).statusCode).toBe(200);
  });

  test('the log, once an hour, and a metric tell of a proxy whose X-Forwarded-For does not count; /readyz does not', async () => {
    const lines: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    const config = testConfig({ HELIOGRAPH_TRUST_PROXY: '192.0.2.1/32' });
    let now = 0;
    const metrics = makeApiMetrics();
    const { app } = await startTestApi(async () => ({ config, logger, metrics, now: () => now }));
    const headers = { 'x-forwarded-for': '198.51.100.1' };
    const ask = async (remoteAddress: string) => {
      const answer = (await app.inject({ url: '/readyz', remoteAddress, headers })).json();
      expect(Object.keys(answer).sort()).toEqual(['checks', 'status']);
    };
    await ask('192.0.2.1');
    for (let times = 0; times < 3; times += 1) await ask('192.0.2.9');
    expect(lines.map((line) => JSON.parse(line).peer)).toEqual(['192.0.2.9']);
    now = 3_600_000;
    await ask('192.0.2.1');
    await ask('192.0.2.9');
    expect(lines).toHaveLength(2);
    const text = await metrics.registry.metrics();
    expect(text).toContain('heliograph_untrusted_proxy_requests_total 4');
  });

  test('/readyz is 503 while the process is about to stop, and everything else still answers', async () => {
    const { app } = await startTestApi(async () => ({ isDraining: () => true }));
    const response = await app.inject('/readyz');
    expect([response.statusCode, response.json().status]).toEqual([503, 'draining']);
    expect((await app.inject('/api/external/test')).statusCode).toBe(200);
  });

  test('with the database away, API and /readyz say 503 in time, and recover on their own', async () => {
    let cut = () => {};
    let mend = () => {};
    let now = 0;
    const { app, database } = await startTestApi(async (databaseUrl) => {
      const proxy = await startPostgresProxy(databaseUrl);
      ({ cut, mend } = proxy);
      return {
        database: openDatabase({ url: proxy.url, poolMax: 4, applicationName: 'test-proxy' }),
        now: () => now,
      };
    });
    const { authorization } = await freshKeyHolder(database);
    const me = async () => await app.inject({ url: '/me', headers: { authorization } });
    expect((await me()).statusCode).toBe(200);
    cut();
    const refused = await me();
    expect([refused.statusCode, refused.json().error.code]).toEqual([503, 'service_unavailable']);
    expect(refused.headers['retry-after']).toBeDefined();
    now += 2_000;
    expect((await app.inject('/readyz')).json().checks.database).toBe('failed');
    mend();
    await expect.poll(async () => (await me()).statusCode).toBe(200);
    now += 2_000;
    expect((await app.inject('/readyz')).statusCode).toBe(200);
  });
});
