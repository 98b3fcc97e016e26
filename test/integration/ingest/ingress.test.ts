import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { INGRESS_TIMEOUTS } from '../../../src/api/inbound/upstream-webhook.ts';
import { openDatabase } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { signed, startTestApi, type TestApi } from '../api/api-harness.ts';
import { type PostgresProxy, startPostgresProxy } from '../api/postgres-proxy.ts';

const WEBHOOK = '/upstream/webhook';
const MAX_BODY_BYTES = 3 * 1024 * 1024;

async function storedBodies({ database }: TestApi): Promise<string[]> {
  const rows = await query<{ body: Buffer }>(database, 'select body from inbox order by id');
  return rows.map(({ body }) => body.toString('latin1'));
}

/** Rejects an inserted body that holds the word, as a defect in the data would. */
async function refuseBodiesWith({ database }: TestApi, word: string): Promise<void> {
  await execute(
    database,
    `alter table inbox add constraint no_poison check (position('${word}'::bytea in body) = 0)`,
  );
}

describe('the verification handshake', () => {
  const query = (params: Record<string, string>) => `${WEBHOOK}?${new URLSearchParams(params)}`;
  const good = { 'hub.mode': 'subscribe', 'hub.verify_token': 'verify-me', 'hub.challenge': '1158201444' };

  test('answers the challenge as plain text, as it was sent', async () => {
    const { app } = await startTestApi();
    for (const challenge of ['1158201444', '<b>é&"\u0000</b>', ' ']) {
      const response = await app.inject(query({ ...good, 'hub.challenge': challenge }));
      expect([response.statusCode, response.body]).toEqual([200, challenge]);
      expect(response.headers['content-type']).toBe('text/plain; charset=utf-8');
      expect(response.headers['x-content-type-options']).toBe('nosniff');
    }
  });

  test('refuses a wrong token or mode with 403, and what is malformed with 400', async () => {
    const { app } = await startTestApi();
    for (const wrong of [
      { 'hub.verify_token': 'verify-me2' },
      { 'hub.verify_token': 'x' },
      { 'hub.mode': 'other' },
    ]) {
      const response = await app.inject(query({ ...good, ...wrong }));
      expect([response.statusCode, response.json().error.code]).toEqual([403, 'verification_failed']);
    }
    const malformed = [
      WEBHOOK,
      query({ ...good, 'hub.challenge': '' }),
      query({ ...good, 'hub.challenge': 'x'.repeat(1025) }),
      `${query(good)}&hub.verify_token=verify-me`,
      `${WEBHOOK}?hub[mode]=subscribe&hub[verify_token]=verify-me&hub[challenge]=1`,
    ];
    for (const url of malformed) {
      const response = await app.inject(url);
      expect([response.statusCode, response.json().error.code]).toEqual([400, 'invalid_parameter']);
    }
  });
});

describe('a body from the upstream platform', () => {
  test('is stored byte for byte, whatever it is and whatever its content type says', async () => {
    const api = await startTestApi();
    const bodies = [
      fixtureBody('in_text'),
      Buffer.from('{"not":json'),
      Buffer.from([0, 255, 254, 0, 10]),
      Buffer.alloc(0),
      Buffer.from('%7B=x&y'),
    ];
    const types = [
      'application/json',
      undefined,
      'text/html; charset',
      '??/;;',
      'application/x-www-form-urlencoded',
      '',
    ];
    const expected: string[] = [];
    for (const body of bodies) {
      for (const type of types) {
        const headers = { ...signed(body), ...(type !== undefined && { 'content-type': type }) };
        const response = await api.app.inject({ method: 'POST', url: WEBHOOK, headers, payload: body });
        expect([type, response.statusCode, response.body]).toEqual([type, 200, '']);
        expected.push(body.toString('latin1'));
      }
    }
    expect(await storedBodies(api)).toEqual(expected);
  });

  test('is refused with 401 and not stored when its signature is missing, malformed or of another body', async () => {
    const api = await startTestApi();
    const body = fixtureBody('in_text');
    const digest = signed(body)['x-hub-signature-256'] ?? '';
    const headers = [
      {},
      signed(body, 'another secret'),
      signed(`${body} `),
      { 'x-hub-signature-256': '' },
      { 'x-hub-signature-256': digest.slice(0, -1) },
      { 'x-hub-signature-256': digest.replace('sha256=', 'sha1=') },
      { 'x-hub-signature-256': digest.slice('sha256='.length) },
      { 'x-hub-signature': digest },
    ];
    for (const one of headers) {
      const response = await api.app.inject({ method: 'POST', url: WEBHOOK, headers: one, payload: body });
      expect([response.statusCode, response.json().error.code]).toEqual([401, 'invalid_signature']);
    }
    expect(await storedBodies(api)).toEqual([]);
  });

  test('may be signed with any of the app secrets, so that one can be exchanged', async () => {
    const api = await startTestApi();
    for (const secret of ['old-app-secret', 'test-app-secret']) {
      const response = await api.app.inject({
        method: 'POST',
        url: WEBHOOK,
        headers: signed('x', secret),
        payload: 'x',
      });
      expect(response.statusCode).toBe(200);
    }
  });

  test('of exactly 3 MiB is stored; one byte more gets 413, with or without Content-Length', async () => {
    const api = await startTestApi();
    const address = await api.app.listen({ host: '127.0.0.1', port: 0 });
    const largest = randomBytes(MAX_BODY_BYTES);
    const tooLarge = Buffer.concat([largest, Buffer.from('x')]);
    const send = async (body: Buffer, isChunked: boolean) =>
      await fetch(`${address}${WEBHOOK}`, {
        method: 'POST',
        headers: signed(body),
        body: isChunked ? new Blob([new Uint8Array(body)]).stream() : new Uint8Array(body),
        duplex: 'half',
      } as RequestInit);
    for (const isChunked of [false, true]) {
      expect((await send(largest, isChunked)).status).toBe(200);
      for (let tries = 0; tries < 5; tries += 1) {
        const refused = await send(tooLarge, isChunked);
        expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([
          413,
          'body_too_large',
        ]);
      }
    }
    expect((await storedBodies(api)).map((body) => body.length)).toEqual([MAX_BODY_BYTES, MAX_BODY_BYTES]);
  });

  test('that was cut short is not stored', async () => {
    const api = await startTestApi();
    const address = new URL(await api.app.listen({ host: '127.0.0.1', port: 0 }));
    const body = fixtureBody('in_text');
    const socket = connect(Number(address.port), address.hostname);
    const [[name, value] = []] = Object.entries(signed(body));
    socket.write(
      `POST ${WEBHOOK} HTTP/1.1\r\nHost: x\r\n${name}: ${value}\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    socket.write(body.subarray(0, 100));
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await storedBodies(api)).toEqual([]);
    const after = await api.app.inject({ method: 'POST', url: WEBHOOK, headers: signed('y'), payload: 'y' });
    expect(after.statusCode).toBe(200);
  });
});

describe('acknowledged means kept', () => {
  const post = async ({ app }: TestApi, body: string) =>
    (await app.inject({ method: 'POST', url: WEBHOOK, headers: signed(body), payload: body })).statusCode;

  test('of 400 bodies at once, each is answered 200 and stored once', async () => {
    const api = await startTestApi();
    const bodies = Array.from({ length: 400 }, (_, index) => `body ${index}`);
    const statuses = await Promise.all(bodies.map((body) => post(api, body)));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(new Set(await storedBodies(api))).toEqual(new Set(bodies));
    expect(await storedBodies(api)).toHaveLength(400);
  });

  test('a body that the database refuses gets 503, and those that came with it are stored', async () => {
    const api = await startTestApi();
    await refuseBodiesWith(api, 'poison');
    const bodies = ['a', 'poison 1', 'b', 'c', 'poison 2', 'd'];
    expect(await Promise.all(bodies.map((body) => post(api, body)))).toEqual([200, 503, 200, 200, 503, 200]);
    expect(await storedBodies(api)).toEqual(['a', 'b', 'c', 'd']);
  });

  test('while connections die, what is answered 200 is stored, and all is well afterwards', async () => {
    const api = await startTestApi();
    const acknowledged: string[] = [];
    const startMs = Date.now();
    const refused: number[] = [];
    let killed = 0;
    const isOver = () => {
      const tookMs = Date.now() - startMs;
      return tookMs > 20_000 || (tookMs > 1_500 && killed > 20 && acknowledged.length > 20);
    };
    const sender = async (name: number) => {
      for (let count = 0; !isOver(); count += 1) {
        const body = `${name}/${count}`;
        const status = await post(api, body);
        if (status === 200) acknowledged.push(body);
        else refused.push(status);
      }
    };
    const killer = async () => {
      const admin = openDatabase({ url: api.databaseUrl, poolMax: 1, applicationName: 'killer' });
      while (!isOver()) {
        const ended = await query(
          admin,
          `select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and application_name = 'test'`,
        );
        killed += ended.length;
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
      await admin.destroy();
    };
    await Promise.all([...Array.from({ length: 20 }, (_, name) => sender(name)), killer()]);
    expect(await post(api, 'last').catch(() => 0)).toBe(200);
    const stored = new Set(await storedBodies(api));
    expect(acknowledged.filter((body) => !stored.has(body))).toEqual([]);
    expect(acknowledged.length).toBeGreaterThan(20);
    expect(killed).toBeGreaterThan(20);
    // What is tried again until upstream gives up is hardly ever refused.
    expect(refused.filter((status) => status !== 503)).toEqual([]);
  });

  test('bodies that come while the database is away for a second are answered 200 when it is back', async () => {
    const { api, proxy } = await startBehindProxy();
    expect(await post(api, 'before')).toBe(200);
    proxy.cut();
    const bodies = Array.from({ length: 30 }, (_, n) => `while away ${n}`);
    const answers = bodies.map((body) => post(api, body));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    proxy.mend();
    expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
    const stored = new Set(await storedBodies(api));
    expect(bodies.filter((body) => !stored.has(body))).toEqual([]);
  });

  test('with the database away, bodies get 503 with Retry-After, and 200 once it is back', async () => {
    const { api, proxy } = await startBehindProxy();
    expect(await post(api, 'before')).toBe(200);
    proxy.cut();
    const refused = await api.app.inject({
      method: 'POST',
      url: WEBHOOK,
      headers: signed('x'),
      payload: 'x',
    });
    expect([refused.statusCode, refused.json().error.code]).toEqual([503, 'service_unavailable']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    proxy.mend();
    await expect.poll(() => post(api, 'after')).toBe(200);
    // What was refused may be stored by a try that was under way: upstream repeats it, and it counts once.
    const stored = (await storedBodies(api)).filter((body) => body !== 'x');
    expect(stored).toEqual(['before', 'after']);
  });

  test('with the database hanging, bodies get 503 within five seconds, and 200 once it is back', async () => {
    const { api, proxy } = await startBehindProxy();
    expect(await post(api, 'before')).toBe(200);
    proxy.hang();
    expect(INGRESS_TIMEOUTS.answerMs).toBe(5_000);
    // It hangs until the answers are there.
    expect(await Promise.all([post(api, 'x'), post(api, 'y')])).toEqual([503, 503]);
    proxy.cut();
    proxy.mend();
    await expect.poll(() => post(api, 'after')).toBe(200);
  });

  test('with all connections forgotten by a firewall, bodies get 200 again within ten seconds', async () => {
    const { api, proxy } = await startBehindProxy();
    await Promise.all(Array.from({ length: 20 }, (_, n) => post(api, `before ${n}`)));
    proxy.strand();
    await expect.poll(() => post(api, 'after')).toBe(200);
  });
});

/** The API whose way to the database goes through a proxy; `api.database` goes straight. */
async function startBehindProxy() {
  let proxy: PostgresProxy | undefined;
  const api = await startTestApi(async (databaseUrl) => {
    proxy = await startPostgresProxy(databaseUrl);
    const ingressDatabase = openDatabase({
      url: proxy.url,
      poolMax: 4,
      applicationName: 'test-proxy',
      timeouts: INGRESS_TIMEOUTS,
    });
    onTestFinished(() => ingressDatabase.destroy());
    return { ingressDatabase };
  });
  if (proxy === undefined) throw new Error('there is no proxy');
  return { api, proxy };
}
