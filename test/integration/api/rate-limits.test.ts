import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { buildApp } from '../../../src/api/app.ts';
import type { Database } from '../../../src/database/database.ts';
import { query } from '../../../src/database/sql.ts';
import { newApiKey } from '../../../src/domain/api-key-format.ts';
import { openObjectStore } from '../../../src/storage/object-store.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testDatabase } from '../../support/test-database.ts';
import { addKey, testConfig } from './api-harness.ts';

const READS = 'HELIOGRAPH_RATE_LIMIT_READS_PER_SECOND';
const WRITES = 'HELIOGRAPH_RATE_LIMIT_WRITES_PER_SECOND';
const WRONG_KEYS = 'HELIOGRAPH_RATE_LIMIT_WRONG_KEYS_PER_MINUTE';

/** Two API processes of one database, as far as a process is an application. */
async function startTwo(settings: Record<string, string>, logger = silentLogger) {
  const { database } = await testDatabase();
  await seedFixtureAccounts(database);
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
  }, 30_000);

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
    await expect
      .poll(async () => (await ask(first, authorization)).headers['ratelimit-limit'], { timeout: 5_000 })
      .toBe('10');
    expect(lines.filter((line) => line.includes('rate limits are counted again'))).toHaveLength(1);
  });
});

describe('keys that are not valid', () => {
  test('are refused with 429 after some from one address, in every process, whatever key comes', async () => {
    const { database, first, second } = await startTwo({ [WRONG_KEYS]: '20' });
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        ask(index % 2 === 0 ? first : second, `Bearer ${newApiKey()}`),
      ),
    );
    expect(count(answers, 401)).toBeGreaterThanOrEqual(20);
    expect(count(answers, 401)).toBeLessThanOrEqual(21);
    const refused = answers.find(({ statusCode }) => statusCode === 429);
    expect(Number(refused?.headers['retry-after'])).toBeGreaterThan(0);
    expect(refused?.headers['ratelimit-limit']).toBeUndefined();
    const { authorization } = await addKey(database);
    expect((await ask(first, authorization)).statusCode).toBe(429);
    expect((await ask(first, authorization, '203.0.113.8')).statusCode).toBe(200);
    // Without a key nothing can be guessed.
    expect((await first.inject({ url: '/me', remoteAddress: '203.0.113.7' })).statusCode).toBe(401);
    expect((await first.inject({ url: '/api/external/test', remoteAddress: '203.0.113.7' })).statusCode).toBe(
      200,
    );
  });

  test('do not shut out a key that was valid at their address before', async () => {
    const { database, first } = await startTwo({ [WRONG_KEYS]: '3' });
    const { authorization } = await addKey(database);
    expect((await ask(first, authorization)).statusCode).toBe(200);
    for (let tries = 0; tries < 5; tries += 1) await ask(first, 'Bearer old');
    expect((await ask(first, 'Bearer old')).statusCode).toBe(429);
    expect((await ask(first, authorization)).statusCode).toBe(200);
  });

  test('count for a whole IPv6 network of one customer, and for the client behind a trusted proxy', async () => {
    const { first } = await startTwo({ [WRONG_KEYS]: '1', HELIOGRAPH_TRUST_PROXY: '192.0.2.1/32' });
    await ask(first, 'Bearer x', '2001:db8:1:2::1');
    expect((await ask(first, 'Bearer x', '2001:db8:1:2:ffff::9')).statusCode).toBe(429);
    expect((await ask(first, 'Bearer x', '2001:db8:1:3::1')).statusCode).toBe(401);
    const behind = async (client: string, remoteAddress = '192.0.2.1') => {
      const headers = { authorization: 'Bearer x', 'x-forwarded-for': client };
      return (await first.inject({ url: '/me', headers, remoteAddress })).statusCode;
    };
    expect([
      await behind('198.51.100.1'),
      await behind('198.51.100.1'),
      await behind('198.51.100.2'),
    ]).toEqual([401, 429, 401]);
    // Anybody else may say what he likes.
    expect([await behind('198.51.100.3', '192.0.2.9'), await behind('198.51.100.4', '192.0.2.9')]).toEqual([
      401, 429,
    ]);
  });
});
