import { expect, test } from 'vitest';
import { removeNumber } from '../../../src/accounts/account-removal.ts';
import { insertBodies, shardOf, takeNewBodies } from '../../../src/inbound/inbox.ts';
import { retryInbox } from '../../../src/inbound/inbox-admin.ts';
import { makeInboxFloor, makeIntakeMemory } from '../../../src/inbound/intake/backlog.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { tryIntakeLocks } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { buffersTouched } from '../../support/buffers-touched.ts';
import { holdSnapshot } from '../../support/held-snapshot.ts';
import { intakeTools, takeInBatch } from '../../support/take-in.ts';
import { seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';

const WABA = '900000000000101';
/** Of the fixture with an unknown number. */
const STRANGE_WABA = '999999999999999';
const NUMBER = '800000000000111';

async function started() {
  const { database, url } = await testWorkerDatabase(2);
  await seedFixtureAccounts(database);
  // Nothing lies back, so that the floor is in force from the second look on.
  const memory = makeIntakeMemory(() => makeInboxFloor(0));
  return { database, url, tools: { ...intakeTools(database), memory } };
}

test('a number that is removed has no owner any more for a process that knew it', async () => {
  const { database, tools } = await started();
  await insertBodies(database, [fixtureBody('in_text')]);
  await takeInBatch(tools);
  expect(tools.memory.owners.get(NUMBER)).toMatchObject({ wabaId: WABA });
  await removeNumber({ database, actor: OPERATOR_COMMAND }, WABA, NUMBER);
  await insertBodies(database, [fixtureBody('in_image_caption_url')]);
  await takeInBatch(tools);
  expect(await query(database, 'select 1 from events')).toHaveLength(1);
  expect(await query(database, `select 1 from inbox where state = 'quarantined'`)).toHaveLength(1);
});

test('bodies that are put back before the intake are taken in by a process that begins its looks behind them', async () => {
  const { database, tools } = await started();
  await insertBodies(database, [fixtureBody('odd_unknown_phone_number')]);
  await takeInBatch(tools);
  await takeInBatch(tools);
  expect(tools.memory.of(shardOf(STRANGE_WABA)).floor.from()).toBe('2');
  await retryInbox(database, ['quarantined']);
  expect(await query(database, `select 1 from inbox where state = 'new'`)).toHaveLength(1);
  await takeInBatch(tools);
  expect(await query(database, `select 1 from inbox where state = 'quarantined'`)).toHaveLength(1);
});

test('with an old snapshot, a look for new bodies walks over nothing that was taken in before', async () => {
  const { database, url, tools } = await started();
  await database.raw('vacuum analyze inbox');
  await holdSnapshot(url);
  const body = fixtureBody('odd_unknown_phone_number');
  const shard = shardOf(STRANGE_WABA);
  const takeIn = async (count: number) => {
    await insertBodies(database, Array(count).fill(body));
    while (await takeInBatch(tools));
  };
  const look = async () => {
    await takeIn(1);
    return await database.transaction(async (trx) => {
      await tryIntakeLocks(trx, [shard]);
      const looks = [{ shard, fromId: tools.memory.of(shard).floor.from() }];
      return await buffersTouched(trx, (explaining) =>
        takeNewBodies({ ...trx, ...explaining }, looks, { bodies: 500, bytes: 1_000_000 }),
      );
    });
  };
  await takeIn(1_000);
  const before = await look();
  await takeIn(5_000);
  const after = await look();
  expect(after, `${before} pages, then ${after}`).toBeLessThan(1.5 * before + 20);
});
