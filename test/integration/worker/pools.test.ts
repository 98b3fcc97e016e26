import { onTestFinished, test } from 'vitest';
import { insertBodies } from '../../../src/inbound/inbox.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { ACCOUNT, bodyOf, imageMessage, textMessage } from '../../support/load/upstream-bodies.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { drawIdsApart, testDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { answer, eventually, startReceiver } from '../../support/webhook-receiver.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

/** Of which activities and upkeep may have half. */
const CONNECTIONS = 10;

test('events are ingested and delivered while activities hold all the connections that they may have', async () => {
  const { database, url } = await testDatabase();
  await drawIdsApart(database);
  await seedFixtureAccounts(database);
  const images = Array.from({ length: 30 }, (_, n) =>
    bodyOf(ACCOUNT, [imageMessage(`wamid.image-${n}`, `90${n}`)]),
  );
  await takeIn(database, ...images);
  const receiver = await startReceiver(answer(200));
  onTestFinished(() => receiver.close());
  await addEndpoint(database, ACCOUNT.wabaId, receiver.url);
  // Activities that store media wait for this table; deliveries do not need it.
  let isReleased = false;
  const holding = database.transaction(async (trx) => {
    await trx.raw('lock table media in access exclusive mode');
    while (!isReleased) await trx.raw('select pg_sleep(0.2)');
  });
  const worker = startWorkerProcess(testSettings(url, { HELIOGRAPH_DATABASE_POOL_MAX: String(CONNECTIONS) }));
  onTestFinished(async () => {
    isReleased = true;
    await holding;
    await worker.stop();
  });
  await worker.ready();
  const held = async () => {
    const rows = await query(
      database,
      `select 1 from pg_locks l join pg_stat_activity a on a.pid = l.pid
        where not l.granted and l.relation = cast('media' as regclass) and a.application_name = 'heliograph-upkeep'
          and l.database = (select oid from pg_database where datname = current_database())`,
    );
    return rows.length;
  };
  // All that there are: the rest of the activities wait for one of them.
  const holdsAll = async () => (await held()) === CONNECTIONS / 2;
  await eventually('activities hold their connections', holdsAll);
  await insertBodies(database, [bodyOf(ACCOUNT, [textMessage('wamid.text', 'hello')])]);
  await eventually('delivered', () => receiver.received.length === 1);
  await eventually('they still hold them', holdsAll);
});
