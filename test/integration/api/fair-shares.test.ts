import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type ShareOwner, shareConnections } from '../../../src/api/shares/connection-shares.ts';
import { newApiKey } from '../../../src/keys/api-key.ts';
import { newSecretToken } from '../../../src/platform/crypto/secret-box.ts';
import { type Database, openDatabase } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { testDatabase } from '../../support/test-database.ts';
import { addKey, OTHER_WABA, startTestApi, type TestApi } from './api-harness.ts';

const LIST_TAKES_SECONDS = 0.1;

/** An API on pools of the product's sizes, whose lists of events take a while. */
async function startWithSlowLists(): Promise<TestApi> {
  return await startTestApi(async (url) => {
    const open = (poolMax: number, name: string) => {
      const database = openDatabase({ url, poolMax, applicationName: name });
      onTestFinished(() => database.destroy());
      return database;
    };
    const database = open(10, 'api');
    const slow: Database = {
      ...database,
      raw: async (text, bindings) => {
        if (!/\bfrom events\b/.test(text)) return await database.raw(text, bindings);
        await database.raw('select pg_sleep(?)', [LIST_TAKES_SECONDS]);
        return await database.raw(text, bindings);
      },
    };
    return { database: slow, lookupDatabase: open(7, 'lookup'), portalDatabase: open(5, 'portal') };
  });
}

/** The 90th percentile of some requests, one after the other; all must be answered 200. */
async function slowOf(count: number, ask: () => Promise<{ statusCode: number }>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const startedAt = performance.now();
    expect((await ask()).statusCode).toBe(200);
    times.push(performance.now() - startedAt);
    await sleep(20);
  }
  return times.sort((a, b) => a - b)[Math.floor(count * 0.9)] ?? 0;
}

test('a hundred slow lists of one key leave connections to another tenant', async () => {
  const { app, database } = await startWithSlowLists();
  const [one, other] = [await addKey(database), await addKey(database, OTHER_WABA)];
  const ask = async (authorization: string, url: string) =>
    await app.inject({ url, headers: { authorization } });
  await ask(other.authorization, '/me');
  let isDone = false;
  const lists = Promise.all(
    Array.from({ length: 100 }, () => ask(one.authorization, '/api/external/events?limit=1')),
  ).then((answers) => {
    isDone = true;
    return answers;
  });
  await sleep(50);
  const slow = await slowOf(20, () => ask(other.authorization, '/me'));
  expect(isDone).toBe(false);
  // Behind the lists it would be ten times as long as one takes.
  expect(slow).toBeLessThan(5 * LIST_TAKES_SECONDS * 1_000);
  expect(new Set((await lists).map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
}, 60_000);

test('floods of made-up session cookies, files, links and keys hold up no key', async () => {
  const { app, database } = await startWithSlowLists();
  const { authorization } = await addKey(database);
  const me = async () => await app.inject({ url: '/me', headers: { authorization } });
  await me();
  const madeUp = [
    () => app.inject({ url: '/portal', headers: { cookie: `__Host-heliograph=${newSecretToken()}` } }),
    () => app.inject({ url: `/received_media/${newSecretToken()}` }),
    () => app.inject({ url: `/portal/invitations/${newSecretToken()}` }),
    () => app.inject({ url: '/me', headers: { authorization: `Bearer ${newApiKey()}` } }),
  ];
  const alone = await slowOf(20, me);
  let isOver = false;
  const flood = madeUp.map(async (ask) => {
    const sender = async () => {
      while (!isOver) expect([303, 401, 404]).toContain((await ask()).statusCode);
    };
    await Promise.all(Array.from({ length: 10 }, sender));
  });
  const slow = await slowOf(20, me);
  isOver = true;
  await Promise.all(flood);
  expect(slow).toBeLessThan(alone + 1_000);
}, 60_000);

test('nobody has more than his part of the connections, and transactions do not wait for themselves', async () => {
  const { database } = await testDatabase();
  let atOnce = 0;
  let most = 0;
  const counting: Database = {
    ...database,
    raw: async (text, bindings) => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      return await database.raw(text, bindings).finally(() => {
        atOnce -= 1;
      });
    },
  };
  const shares = shareConnections(counting, 2);
  const served = async (owner: string, work: () => Promise<unknown>) =>
    await new Promise((resolve, reject) => {
      shares.serve({ name: owner, member: owner }, () => void work().then(resolve, reject));
    });
  const pause = () => query(shares.database, 'select pg_sleep(0.02)');
  await Promise.all(Array.from({ length: 10 }, () => served('one', pause)));
  expect(most).toBe(2);
  most = 0;
  await Promise.all([...'abc'].flatMap((owner) => Array.from({ length: 4 }, () => served(owner, pause))));
  expect(most).toBeGreaterThan(2);
  expect(most).toBeLessThanOrEqual(6);
  const nested = () => shares.database.transaction(async () => await pause());
  await Promise.all(Array.from({ length: 4 }, () => served('one', nested)));
  // One that fails hands its place on.
  const failing = () => query(shares.database, 'select 1/0');
  const results = await Promise.allSettled(Array.from({ length: 6 }, () => served('one', failing)));
  expect(results.every(({ status }) => status === 'rejected')).toBe(true);
  await served('one', pause);
}, 30_000);

test('members of an owner take turns, have its part together, and operators wait for nobody of them', async () => {
  const { database, url } = await testDatabase();
  const operators = openDatabase({ url, poolMax: 1, applicationName: 'operators' });
  onTestFinished(() => operators.destroy());
  const begun: string[] = [];
  const gate = Promise.withResolvers<void>();
  const held: Database = {
    ...database,
    raw: async (text, bindings) => {
      begun.push(String(bindings));
      await gate.promise;
      return await database.raw(text, bindings);
    },
  };
  const shares = shareConnections(held, 2, operators);
  const ask = async (owner: ShareOwner, label: string) =>
    await new Promise((resolve, reject) => {
      shares.serve(owner, () => void query(shares.database, 'select ?::text', [label]).then(resolve, reject));
    });
  const tenant = 'tenant';
  const first = Array.from({ length: 5 }, (_, n) => ask({ name: tenant, member: 'one' }, `one ${n}`));
  const second = [ask({ name: tenant, member: 'two' }, 'two 0')];
  await ask({ name: 'operator', member: 'operator', isOperator: true }, 'operator');
  // Two WABAs or persons have no more than one of them would have.
  expect(begun).toEqual(['one 0', 'one 1']);
  gate.resolve();
  await Promise.all([...first, ...second]);
  expect(begun).toHaveLength(6);
  expect(begun.indexOf('two 0')).toBeLessThan(begun.indexOf('one 4'));
});
