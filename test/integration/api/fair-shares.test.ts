import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type ShareOwner, shareConnections } from '../../../src/api/shares/connection-shares.ts';
import { newApiKey } from '../../../src/features/keys/api-key.ts';
import { newSecretToken } from '../../../src/platform/crypto/secret-box.ts';
import { type Database, openDatabase } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { testDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { addKey, OTHER_WABA, startTestApi } from './api-harness.ts';

/** Of the advisory lock that the statements under test wait for, each on a connection of its pool. */
const GATE = 7;

type IsHeld = (text: string) => boolean;

/** An API on pools of the product's sizes. The statements that are chosen by pool hang until `open`. */
async function startHeldApi(held: { api?: IsHeld; lookup?: IsHeld; portal?: IsHeld }) {
  let databaseUrl = '';
  const api = await startTestApi(async (url) => {
    databaseUrl = url;
    const pool = (poolMax: number, name: string, isHeld: IsHeld = () => false): Database => {
      const database = openDatabase({ url, poolMax, applicationName: name });
      onTestFinished(() => database.destroy());
      const raw: Database['raw'] = async (text, bindings) => {
        if (!isHeld(text)) return await database.raw(text, bindings);
        return await database.transaction(async (trx) => {
          await trx.raw('select pg_advisory_xact_lock_shared(:gate)', { gate: GATE });
          return await trx.raw(text, bindings);
        });
      };
      return { ...database, raw };
    };
    return {
      database: pool(10, 'api', held.api),
      lookupDatabase: pool(7, 'lookup', held.lookup),
      portalDatabase: pool(5, 'portal', held.portal),
    };
  });
  const gate = openDatabase({ url: databaseUrl, poolMax: 1, applicationName: 'gate' });
  onTestFinished(() => gate.destroy());
  await gate.raw('select pg_advisory_lock(:gate)', { gate: GATE });
  return {
    ...api,
    /** How many statements hang. */
    countHeld: async () => {
      const waiting = `select 1 from pg_locks where locktype = 'advisory' and not granted
                          and database = (select oid from pg_database where datname = current_database())`;
      return (await query(api.database, waiting)).length;
    },
    open: () => gate.raw('select pg_advisory_unlock(:gate)', { gate: GATE }),
  };
}

type Answer = { statusCode: number };

/** Twenty requests are answered 200, one after the other. What waits for a connection that hangs gets no answer. */
async function expectServed(ask: () => Promise<Answer>): Promise<void> {
  for (let n = 0; n < 20; n += 1) {
    const answer = await Promise.race([ask(), sleep(10_000, null)]);
    expect(answer?.statusCode).toBe(200);
  }
}

test('a hundred lists of one key that hang leave connections to another tenant', async () => {
  const { app, database, countHeld, open } = await startHeldApi({
    api: (text) => /\bfrom events\b/.test(text),
  });
  const [one, other] = [await addKey(database), await addKey(database, OTHER_WABA)];
  const ask = async (authorization: string, url: string) =>
    await app.inject({ url, headers: { authorization } });
  const lists = Array.from({ length: 100 }, () => ask(one.authorization, '/api/external/events?limit=1'));
  await eventually('lists hang', async () => (await countHeld()) > 0);
  await expectServed(() => ask(other.authorization, '/me'));
  expect(await countHeld()).toBeGreaterThan(0);
  await open();
  expect(new Set((await Promise.all(lists)).map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
});

test('look-ups of made-up session cookies, files and links that hang hold up no key, nor do made-up keys', async () => {
  const { app, database, countHeld, open } = await startHeldApi({
    lookup: (text) => !/\bapi_keys\b/.test(text),
    portal: () => true,
  });
  const { authorization } = await addKey(database);
  const madeUp = [
    () => app.inject({ url: '/portal', headers: { cookie: `__Host-heliograph=${newSecretToken()}` } }),
    () => app.inject({ url: `/received_media/${newSecretToken()}` }),
    () => app.inject({ url: `/portal/invitations/${newSecretToken()}` }),
  ];
  const hanging: Promise<Answer>[] = [];
  // More than there are connections. What comes at the same moment is looked up by one statement.
  for (let n = 0; n < 45; n += 1) {
    hanging.push(...madeUp.slice(n % 3, (n % 3) + 1).map((ask) => ask()));
    await sleep(5);
  }
  await eventually('look-ups hang', async () => (await countHeld()) > 0);
  let isOver = false;
  const wrongKeys = Array.from({ length: 10 }, async () => {
    while (!isOver) {
      const wrong = await app.inject({ url: '/me', headers: { authorization: `Bearer ${newApiKey()}` } });
      expect(wrong.statusCode).toBe(401);
    }
  });
  await expectServed(() => app.inject({ url: '/me', headers: { authorization } }));
  expect(await countHeld()).toBeGreaterThan(0);
  isOver = true;
  await open();
  await Promise.all(wrongKeys);
  const answers = await Promise.all(hanging);
  expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([303, 404]));
});

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
});

test('members of an owner take turns, have its part together, and operators wait for nobody of them', async () => {
  const { database, url } = await testDatabase();
  const operators = openDatabase({ url, poolMax: 1, applicationName: 'operators' });
  onTestFinished(() => operators.destroy());
  const begun: string[] = [];
  const gate = Promise.withResolvers<void>();
  const held: Database = {
    ...database,
    raw: async (text, bindings) => {
      begun.push(String(bindings?.label));
      await gate.promise;
      return await database.raw(text, bindings);
    },
  };
  const shares = shareConnections(held, 2, operators);
  const ask = async (owner: ShareOwner, label: string) =>
    await new Promise((resolve, reject) => {
      shares.serve(
        owner,
        () => void query(shares.database, 'select :label::text', { label }).then(resolve, reject),
      );
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
