import { expect, onTestFinished, test } from 'vitest';
import { shardOf } from '../../../src/engine/inbox/shards.ts';
import { removeNumber } from '../../../src/features/accounts/remove-number.ts';
import { startIntake, type WorkerShare } from '../../../src/ingest/intake/intake-loop.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { drainInbox, intakeTools, storedEvents } from '../../support/take-in.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';

const ONE = account('900000000000101', '800000000000111');
const OTHER = account('900000000000202', '800000000000221');

function account(wabaId: string, phoneNumberId: string) {
  return { wabaId, phoneNumberId, displayPhoneNumber: '12025550100' };
}

async function started() {
  const { database, url } = await seededWorkerDatabase();
  return { database, url };
}

function runIntake(database: Database, share?: () => WorkerShare) {
  const intake = startIntake(intakeTools(database), share);
  onTestFinished(() => intake.stop());
  return intake;
}

async function bodiesLeft(database: Database, { wabaId }: { wabaId: string }): Promise<number> {
  const left = `select 1 from inbox where waba_id = :wabaId and state = 'new'`;
  return (await query(database, left, { wabaId })).length;
}

async function eventIds(database: Database): Promise<string[]> {
  return (await storedEvents(database)).map(({ eventId }) => eventId);
}

test('the WABAs of these tests are of two shards, which two workers would share', () => {
  expect(shardOf(ONE.wabaId) % 2).toBe(1);
  expect(shardOf(OTHER.wabaId) % 2).toBe(0);
});

test('a shard whose transaction hangs on a lock holds up no other, also when both came together', async () => {
  const { database } = await started();
  await insertBodies(database, [bodyOf(ONE, [textMessage('wamid.first', 'hello')])]);
  await drainInbox(database);
  let isReleased = false;
  const holding = database.transaction(async (trx) => {
    await execute(trx, 'select 1 from conversations for update');
    // A transaction that does nothing would be ended.
    while (!isReleased) await execute(trx, 'select pg_sleep(0.2)');
  });
  const bodies = [ONE, OTHER].map((one) => bodyOf(one, [textMessage(`wamid.${one.wabaId}`, 'hello')]));
  await insertBodies(database, bodies);
  runIntake(database);
  // The first transaction takes both, and waits for the lock for a second.
  await eventually('the other is taken in', () => bodiesLeft(database, OTHER), { is: 0 });
  for (let n = 0; n < 3; n += 1) {
    const startMs = performance.now();
    await insertBodies(database, [bodyOf(OTHER, [textMessage(`wamid.later-${n}`, 'hello')])]);
    await eventually('so is the next', () => bodiesLeft(database, OTHER), { is: 0 });
    // The usual patience with a lock is 10 s.
    expect(performance.now() - startMs).toBeLessThan(8_000);
  }
  expect(await bodiesLeft(database, ONE)).toBe(1);
  isReleased = true;
  await holding;
  await eventually('it goes on', () => bodiesLeft(database, ONE), { is: 0 });
});

test('a shard in which nothing can be stored holds up no other', async () => {
  const { database } = await started();
  await database.raw(
    `create function refuse() returns trigger language plpgsql as $$ begin
       if new.waba_id = '${ONE.wabaId}' then raise exception 'poison'; end if; return new; end $$;
     create trigger refuse before insert on messages for each row execute function refuse()`,
  );
  const poison = Array.from({ length: 60 }, (_, n) => bodyOf(ONE, [textMessage(`wamid.bad-${n}`, 'hello')]));
  await insertBodies(database, [...poison, bodyOf(OTHER, [textMessage('wamid.good', 'hello')])]);
  runIntake(database);
  await eventually('the other is taken in', () => bodiesLeft(database, OTHER), { is: 0 });
  expect(await eventIds(database)).toEqual(['wamid.good']);
  await eventually('it is known by then that the system works', async () => {
    const failed = await query(database, `select 1 from inbox where state = 'failed'`);
    return failed.length === poison.length;
  });
});

test('a worker takes in its own shards at once, and those of one that died when they have waited', async () => {
  const { database } = await started();
  const intake = runIntake(database, () => ({ rank: 0, count: 2 }));
  await insertBodies(
    database,
    [ONE, OTHER].map((one) => bodyOf(one, [textMessage(one.wabaId, 'hello')])),
  );
  const storedMs = performance.now();
  intake.notified(`${shardOf(ONE.wabaId)},${shardOf(OTHER.wabaId)}`);
  await eventually('its own is taken in', () => bodiesLeft(database, OTHER), { is: 0 });
  if (performance.now() - storedMs < 900) expect(await bodiesLeft(database, ONE)).toBe(1);
  await eventually('the other follows', () => bodiesLeft(database, ONE), { is: 0 });
  expect(performance.now() - storedMs).toBeGreaterThan(900);
});

test('bodies of several WABAs keep the order of each with three workers that know nothing of each other', async () => {
  const { database } = await started();
  for (let n = 0; n < 3; n += 1) runIntake(database);
  const wanted: string[] = [];
  for (let n = 0; n < 40; n += 1) {
    const named = (one: typeof ONE) => textMessage(`wamid.${one.wabaId}.${String(n).padStart(3, '0')}`, 'x');
    await insertBodies(database, [bodyOf(ONE, [named(ONE)]), bodyOf(OTHER, [named(OTHER)])]);
    wanted.push(`wamid.${ONE.wabaId}.${String(n).padStart(3, '0')}`);
  }
  const left = async () => (await bodiesLeft(database, ONE)) + (await bodiesLeft(database, OTHER));
  await eventually('all is taken in', left, { is: 0 });
  const rows = await query<{ id: string }>(
    database,
    'select upstream_id as id from messages where waba_id = :wabaId order by id',
    { wabaId: ONE.wabaId },
  );
  expect(rows.map(({ id }) => id)).toEqual(wanted);
});

test('a number in a body that names another WABA belongs to its owner, until it is removed there', async () => {
  const { database } = await started();
  const intake = intakeTools(database);
  const misnamed = (id: string) => bodyOf({ ...OTHER, wabaId: ONE.wabaId }, [textMessage(id, 'hello')]);
  await insertBodies(database, [misnamed('wamid.1')]);
  await drainInbox(database, intake);
  expect(await storedEvents(database)).toMatchObject([{ eventId: 'wamid.1', wabaId: OTHER.wabaId }]);
  await removeNumber({ database, actor: OPERATOR_COMMAND }, OTHER.wabaId, OTHER.phoneNumberId);
  await insertBodies(database, [misnamed('wamid.2')]);
  await drainInbox(database, intake);
  expect(await eventIds(database)).toEqual(['wamid.1']);
});
