import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { buildApp } from '../../../src/api/app.ts';
import { countByAddress } from '../../../src/api/rate-limits/address-counts.ts';
import { hashApiKey, newApiKey } from '../../../src/features/keys/api-key.ts';
import { insertApiKey, revokeApiKey } from '../../../src/features/keys/api-key-store.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { addKey, testConfig, WABA } from './api-harness.ts';

const READS = 'HELIOGRAPH_RATE_LIMIT_READS_PER_SECOND';
const WRITES = 'HELIOGRAPH_RATE_LIMIT_WRITES_PER_SECOND';
const WRONG_KEYS = 'HELIOGRAPH_RATE_LIMIT_WRONG_KEYS_PER_MINUTE';

/** Two API processes of one database, as far as a process is an application. */
async function startTwo(settings: Record<string, string>, logger = silentLogger) {
  const { database } = await seededDatabase();
  const config = testConfig(settings);
  const objectStore = openObjectStore(config.objectStore);
  const statements: string[] = [];
  const limitsDatabase: Database = {
    ...database,
    raw: (text, bindings) => {
      statements.push(text);
      return database.raw(text, bindings);
    },
  };
  const apps = [1, 2].map(() => buildApp({ config, database, limitsDatabase, objectStore, logger }));
  for (const app of apps) {
    await app.ready();
    onTestFinished(async () => await app.close());
  }
  const [first, second] = apps;
  if (first === undefined || second === undefined) throw new Error('two were made');
  return { database, statements, first, second };
}

async function ask(app: FastifyInstance, authorization: string, remoteAddress = '203.0.113.7') {
  return await app.inject({ url: '/me', headers: { authorization }, remoteAddress });
}

const count = (answers: { statusCode: number }[], status: number) =>
  answers.filter(({ statusCode }) => statusCode === status).length;

describe('the limit of a key', () => {
  test('is one for all API processes, also for requests side by side, and begins anew with each window', async () => {
    const { database, first, second } = await startTwo({ [READS]: '4' });
    const { authorization } = await addKey(database);
    const other = await addKey(database);
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => ask(index % 2 === 0 ? first : second, authorization)),
    );
    const passed = count(answers, 200);
    expect(count(answers, 429)).toBe(50 - passed);
    // Two processes may overdraw by a twentieth of 40.
    expect(passed).toBeGreaterThanOrEqual(40);
    expect(passed).toBeLessThanOrEqual(42);
    const refused = answers.find(({ statusCode }) => statusCode === 429);
    expect(refused?.json().error).toMatchObject({ type: 'rate_limit_error', code: 'rate_limit_exceeded' });
    expect(refused?.headers).toMatchObject({
      'ratelimit-limit': '40',
      'ratelimit-remaining': '0',
      'retry-after': refused?.headers['ratelimit-reset'],
    });
    const waitSeconds = Number(refused?.headers['retry-after']);
    expect(waitSeconds).toBeGreaterThanOrEqual(1);
    expect(waitSeconds).toBeLessThanOrEqual(10);
    expect((await ask(second, other.authorization)).statusCode).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, waitSeconds * 1000));
    for (const app of [first, second]) expect((await ask(app, authorization)).statusCode).toBe(200);
  });

  test('is told on every answer to a valid key, errors included', async () => {
    const { database, first } = await startTwo({ [READS]: '10', [WRITES]: '2' });
    const { authorization } = await addKey(database);
    const headers = { authorization };
    const remaining: number[] = [];
    for (const url of ['/me', '/api/external/messages/1/media', '/api/external/events?limit=0']) {
      const answer = await first.inject({ url, headers });
      expect(answer.headers['ratelimit-limit']).toBe('100');
      remaining.push(Number(answer.headers['ratelimit-remaining']));
    }
    expect(remaining).toEqual([99, 98, 97]);
    const write = await first.inject({ method: 'POST', url: '/api/external/replays', headers, payload: {} });
    expect(write.headers).toMatchObject({ 'ratelimit-limit': '20', 'ratelimit-remaining': '19' });
    expect((await first.inject('/me')).headers['ratelimit-limit']).toBeUndefined();
  });

  test('counts the bytes of bodies too, whether their length is announced or not', async () => {
    const { database, first } = await startTwo({ [WRITES]: '2' });
    const { authorization } = await addKey(database);
    const body = JSON.stringify({ a: 'a'.repeat(40_000) });
    const headers = { authorization, 'content-type': 'application/json' };
    const send = (payload: string | Readable) =>
      first.inject({ method: 'POST', url: '/api/external/replays', headers, payload });
    const announced = await send(body);
    expect(announced.headers).toMatchObject({ 'ratelimit-limit': '20', 'ratelimit-remaining': '17' });
    const chunked = Readable.from([Buffer.from(body)]);
    const unannounced = await first.inject({
      method: 'POST',
      url: '/api/external/replays',
      payload: chunked,
      headers: { ...headers, 'transfer-encoding': 'chunked' },
    });
    expect(unannounced.headers['ratelimit-remaining']).toBe('16');
    expect((await send('{}')).headers['ratelimit-remaining']).toBe('13');
  });

  test('costs the store far fewer statements than requests while much is left', async () => {
    const { database, statements, first } = await startTwo({ [READS]: '1000' });
    const { authorization } = await addKey(database);
    await Promise.all(Array.from({ length: 500 }, () => ask(first, authorization)));
    await expect
      .poll(async () => await query(database, `select points from rate_limits where key like 'read:%'`))
      .toEqual([{ points: 500 }]);
    expect(statements.filter((text) => text.includes('rate_limits')).length).toBeLessThan(20);
  });

  test('is not kept while it cannot be counted: everything passes, with one warning, until it can', async () => {
    const lines: string[] = [];
    const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    const { database, first } = await startTwo({ [READS]: '1' }, logger);
    const { authorization } = await addKey(database);
    await database.raw('alter table rate_limits rename to rate_limits_away');
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(first, authorization)));
    expect(count(answers, 200)).toBe(50);
    expect(lines.filter((line) => line.includes('rate limits cannot be counted'))).toHaveLength(1);
    await database.raw('alter table rate_limits_away rename to rate_limits');
    await expect.poll(async () => (await ask(first, authorization)).headers['ratelimit-limit']).toBe('10');
    expect(lines.filter((line) => line.includes('rate limits are counted again'))).toHaveLength(1);
  });
});

describe('keys that are not valid', () => {
  test('are answered 401 however many they are, and hold up no right key of their address', async () => {
    const { database, first, second } = await startTwo({ [WRONG_KEYS]: '5' });
    const expired = await addKey(database, WABA, new Date(Date.now() - 1_000));
    const revoked = await addKey(database);
    await revokeApiKey(database, WABA, revoked.id);
    const wrong = [
      ['Bearer x', 'invalid_api_key'],
      [`Bearer ${newApiKey()}`, 'invalid_api_key'],
      [`Bearer ck_${'0'.repeat(64)}`, 'invalid_api_key'],
      [revoked.authorization, 'invalid_api_key'],
      [expired.authorization, 'expired_api_key'],
    ] as const;
    for (const app of [first, second]) {
      for (const [authorization, code] of wrong) {
        const answers = await Promise.all(Array.from({ length: 40 }, () => ask(app, authorization)));
        expect(new Set(answers.map((answer) => `${answer.statusCode} ${answer.json().error.code}`))).toEqual(
          new Set([`401 ${code}`]),
        );
        // One that nobody has used here before.
        const { authorization: right } = await addKey(database);
        expect((await ask(app, right)).statusCode).toBe(200);
      }
      expect((await app.inject({ url: '/me', remoteAddress: '203.0.113.7' })).statusCode).toBe(401);
    }
  });

  test('that are made up take one connection, and few statements', async () => {
    const { app, database, looksUp } = await startCounting();
    const { authorization } = await addKey(database);
    for (let count = 0; count < 10; count += 1) await ask(app, `Bearer ${newApiKey()}`);
    const before = looksUp.statements;
    looksUp.mostAtOnce = 0;
    const flood = Array.from({ length: 2_000 }, () => ask(app, `Bearer ${newApiKey()}`));
    const right = ask(app, authorization, '203.0.113.8');
    expect((await right).statusCode).toBe(200);
    expect(count(await Promise.all(flood), 401)).toBe(2_000);
    // Of the address, and of the right key's.
    expect(looksUp.mostAtOnce).toBeLessThanOrEqual(2);
    expect(looksUp.statements - before).toBeLessThan(500);
  });

  test('whose check digits are not ours are right nevertheless, if somebody has made them so', async () => {
    const { database, first } = await startTwo({ [WRONG_KEYS]: '5' });
    const key = `ck_${'0123456789abcdef'.repeat(4)}`;
    await insertApiKey(database, WABA, {
      name: 'from elsewhere',
      keyHash: hashApiKey(key),
      prefix: 'ck_01234567',
      lastFour: 'cdef',
      expiresAt: null,
    });
    expect((await ask(first, `Bearer ${key}`)).statusCode).toBe(200);
  });

  test('count for a whole IPv6 network of one customer', () => {
    let nowMs = 0;
    const wrongKeys = countByAddress(2, () => nowMs);
    for (let tries = 0; tries < 3; tries += 1) wrongKeys.note('2001:db8:1:2::1');
    expect(wrongKeys.areMany('2001:db8:1:2:ffff::9')).toBe(true);
    expect(wrongKeys.areMany('2001:db8:1:3::1')).toBe(false);
    nowMs = 60_001;
    expect(wrongKeys.areMany('2001:db8:1:2::1')).toBe(false);
    const without = countByAddress(0);
    for (let tries = 0; tries < 100; tries += 1) without.note('192.0.2.1');
    expect(without.areMany('192.0.2.1')).toBe(false);
  });
});

async function startCounting() {
  const { database } = await seededDatabase();
  const config = testConfig({ [WRONG_KEYS]: '5' });
  const looksUp = { statements: 0, atOnce: 0, mostAtOnce: 0 };
  const lookupDatabase: Database = {
    ...database,
    raw: async (text, bindings) => {
      looksUp.statements += 1;
      looksUp.atOnce += 1;
      looksUp.mostAtOnce = Math.max(looksUp.mostAtOnce, looksUp.atOnce);
      return await database.raw(text, bindings).finally(() => {
        looksUp.atOnce -= 1;
      });
    },
  };
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({ config, database, lookupDatabase, objectStore, logger: silentLogger });
  await app.ready();
  onTestFinished(async () => await app.close());
  return { app, database, looksUp };
}
