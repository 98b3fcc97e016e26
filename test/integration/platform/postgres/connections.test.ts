import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { claimDue } from '../../../../src/engine/queue/claim.ts';
import { insertBodies } from '../../../../src/ingest/intake/store-bodies.ts';
import { type DatabaseOptions, listenToDatabase } from '../../../../src/platform/postgres/connection.ts';
import { LastStatements, openDatabase } from '../../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../../src/platform/postgres/sql.ts';
import { dueShares } from '../../../support/due-shares.ts';
import { silentLogger } from '../../../support/silent-logger.ts';
import { drainInbox, storedEvents, takeIn } from '../../../support/take-in.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { seededDatabase, testDatabase } from '../../../support/test-database.ts';
import { fixtureBody } from '../../../support/upstream-fixtures.ts';
import { eventually } from '../../../support/webhook-receiver.ts';
import { startPostgresProxy } from '../../api/postgres-proxy.ts';

const WABA = '900000000000101';

function opened(options: Pick<DatabaseOptions, 'url'> & Partial<DatabaseOptions>) {
  const database = openDatabase({ poolMax: 4, applicationName: 'watched', ...options });
  onTestFinished(() => database.destroy());
  return database;
}

describe('a commit', () => {
  test('waits for the disk whatever the server would do by default, unless its loss only repeats work', async () => {
    const { database, url } = await testDatabase();
    await database.raw(`alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off`);
    const shown = async (durable: boolean) =>
      await query(opened({ url, durable }), 'show synchronous_commit');
    expect(await shown(true)).toEqual([{ synchronous_commit: 'on' }]);
    expect(await shown(false)).toEqual([{ synchronous_commit: 'off' }]);
  });

  test('that fails behind a statement that has succeeded is a failure of the statement', async () => {
    const { database } = await testDatabase();
    await database.raw('create table kept (n integer, unique (n) deferrable initially deferred)');
    await execute(database, 'insert into kept values (1)');
    await expect(execute(database, 'insert into kept values (1)')).rejects.toThrow(/duplicate key/);
    const inTransaction = database.transaction((trx) => execute(trx, 'insert into kept values (1)'));
    await expect(inTransaction).rejects.toThrow(/duplicate key/);
    const last = database.transaction(
      async (trx) => new LastStatements(execute(trx, 'insert into kept values (1)')),
    );
    await expect(last).rejects.toThrow(/duplicate key/);
    expect(await query(database, 'select n from kept')).toEqual([{ n: 1 }]);
  });

  test('that the server answers with a rollback is a failure', async () => {
    const { database } = await testDatabase();
    await database.raw('create table kept (n integer)');
    const swallowed = database.transaction(async (trx) => {
      await execute(trx, 'insert into kept values (1)');
      await execute(trx, 'select 1 / 0').catch(() => undefined);
    });
    await expect(swallowed).rejects.toThrow(/rolled back/);
    expect(await query(database, 'select n from kept')).toEqual([]);
  });
});

/** A message of a customer with a long text, and a status under the same key. */
function bodyOf(list: 'messages' | 'statuses', item: object): Buffer {
  const metadata = { display_phone_number: '12025550100', phone_number_id: '800000000000111' };
  const value = { messaging_product: 'whatsapp', metadata, [list]: [item] };
  const entry = [{ id: WABA, changes: [{ field: 'messages', value }] }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

test('what a process has locked that froze while the server was sending to it is free again within seconds', async () => {
  const { database, url } = await seededDatabase();
  await addEndpoint(database, WABA, 'https://frozen.example/hook');
  const messages = Array.from({ length: 320 }, (_, n) =>
    bodyOf('messages', {
      id: `wamid.frozen-${n}`,
      from: '12025550143',
      timestamp: '1790000000',
      type: 'text',
      text: { body: 'x'.repeat(64_000) },
    }),
  );
  await takeIn(database, ...messages);
  const proxy = await startPostgresProxy(url);
  const frozen = opened({ url: proxy.url, applicationName: 'frozen' });
  await query(frozen, 'select 1');
  proxy.freeze();
  const shares = await dueShares(database, 1_000);
  const claim = { shares, limit: 512, token: randomUUID(), leaseMs: 30_000 };
  const claiming = claimDue(frozen, claim).catch(() => undefined);
  await eventually('the server waits for the process that is frozen', async () => {
    const activity = `select 1 from pg_stat_activity where application_name = 'frozen' and wait_event = 'ClientWrite'`;
    return (await query(database, activity)).length === 1;
  });
  const before = (await storedEvents(database)).length;
  const status = {
    id: 'wamid.frozen-0',
    status: 'read',
    timestamp: '1790000000',
    recipient_id: '12025550143',
  };
  await insertBodies(database, [bodyOf('statuses', status), fixtureBody('batch_multi_entry_two_wabas')]);
  await eventually('the bodies of all tenants are taken in', async () => {
    await drainInbox(database).catch(() => undefined);
    return (await storedEvents(database)).length > before + 1;
  });
  await frozen.cutConnections(Number.POSITIVE_INFINITY);
  await claiming;
});

test('a connection that the server ends in the packet that says it is ready fails its statement, not the process', async () => {
  const { url } = await testDatabase();
  const proxy = await startPostgresProxy(url);
  const through = opened({ url: proxy.url });
  proxy.endWhenReady();
  await expect(query(through, 'select 1')).rejects.toThrow(/connection/);
  proxy.mend();
  expect(await query(through, 'select 1 as n')).toEqual([{ n: 1 }]);
});

describe('a connection that a firewall forgot', () => {
  test('is noticed by the listener, which connects anew and has the others cut', async () => {
    const { database, url } = await testDatabase();
    const proxy = await startPostgresProxy(url);
    const through = opened({ url: proxy.url });
    await query(through, 'select 1');
    let heard = 0;
    const listener = listenToDatabase({
      url: proxy.url,
      applicationName: 'listener',
      handlers: { heliograph_sends: () => (heard += 1) },
      logger: silentLogger,
      onSilence: (sinceMs) => void through.cutConnections(sinceMs),
      heartbeat: { everyMs: 200, answerMs: 500 },
    });
    onTestFinished(() => listener.close());
    listener.open();
    await eventually('it listens', async () => heard > 0);
    proxy.strand();
    // Nothing of the statement's own would say this, nor so soon.
    await expect(query(through, 'select 1')).rejects.toThrow(/terminated/);
    expect(await query(through, 'select 1 as n')).toEqual([{ n: 1 }]);
    const before = heard;
    await database.raw(`select pg_notify('heliograph_sends', '')`);
    await eventually('it hears again', async () => heard > before);
  });

  test('takes the others with it when a statement on it is not answered', async () => {
    const { url } = await testDatabase();
    const proxy = await startPostgresProxy(url);
    const through = opened({ url: proxy.url, timeouts: { statementMs: 500, answerMs: 1_000 } });
    await Promise.all(Array.from({ length: 4 }, () => query(through, 'select pg_sleep(0.1)')));
    proxy.strand();
    await expect(through.transaction((trx) => query(trx, 'select 1'))).rejects.toThrow('Query read timeout');
    // On one of the stranded connections it would fail as the statement before did.
    await query(through, 'select 1');
  });
});
