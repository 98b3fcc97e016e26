import { expect, test } from 'vitest';
import { findOldestBodies, takeNewBodies } from '../../../src/engine/inbox/bodies.ts';
import { shardOf } from '../../../src/engine/inbox/shards.ts';
import { followNumbers } from '../../../src/features/accounts/followed-numbers.ts';
import { removeNumber } from '../../../src/features/accounts/remove-number.ts';
import { eraseFromBodies } from '../../../src/ingest/bodies/erase-bodies.ts';
import { retryInbox } from '../../../src/ingest/bodies/quarantine.ts';
import { makeInboxFloor } from '../../../src/ingest/intake/inbox-floor.ts';
import { tryIntakeLocks } from '../../../src/ingest/intake/intake-locks.ts';
import { lookOf, makeIntakeMemory, noteEpochs } from '../../../src/ingest/intake/shard-memory.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { OPERATOR_COMMAND } from '../../../src/platform/audit/audit.ts';
import { type Bindings, query } from '../../../src/platform/postgres/sql.ts';
import { buffersTouched } from '../../support/buffers-touched.ts';
import { holdSnapshot } from '../../support/held-snapshot.ts';
import { bodyOf, textMessage } from '../../support/load/upstream-bodies.ts';
import { drainInbox, intakeTools, storedEvents, takeInBatch, takeSmallSteps } from '../../support/take-in.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';

const WABA = '900000000000101';
/** Of the fixture with an unknown number. */
const STRANGE_WABA = '999999999999999';
const NUMBER = '800000000000111';

async function started() {
  const { database, url } = await seededWorkerDatabase(2);
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

test('a transaction that began before a change does not pass for current once another has noticed the change', () => {
  const shards = [makeIntakeMemory().of(3)];
  const now = new Map([[3, '7']]);
  const [first, second] = [noteEpochs(shards), noteEpochs(shards)];
  expect([first(now), second(now), noteEpochs(shards)(now)]).toEqual([false, false, true]);
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

test('a body that another process finished and that an erasure cut since is read anew', async () => {
  const { database, tools } = await started();
  const phoneNumberId = '800000000000777';
  const account = { wabaId: WABA, phoneNumberId, displayPhoneNumber: '12025550177' };
  const texts = Array.from({ length: 40 }, (_, n) => textMessage(`wamid.${n}`, 'hello'));
  const others = JSON.parse(String(bodyOf(account, texts)), (key, value) =>
    key === 'id' && value === 'wamid.39' ? 'wamid.theirs' : value,
  );
  others.entry[0].changes[0].value.messages.at(-1).from = '12025550199';
  await insertBodies(database, [Buffer.from(JSON.stringify(others))]);
  takeSmallSteps(tools);
  const { kept, pace } = tools.memory.of(shardOf(WABA));
  // Until its next turn begins with this WABA.
  do await takeInBatch(tools);
  while (kept.size === 0 || pace.afterWabaId() !== '');
  await drainInbox(database);
  const [body] = await query<{ day: string; state: string }>(
    database,
    'select received_day as day, state from inbox',
  );
  expect(body?.state).toBe('waiting');
  const who = { wabaId: WABA, untils: new Map([['12025550199', 'infinity']]), isGroup: false };
  const erased = await database.transaction((trx) =>
    eraseFromBodies(trx, { ...who, phoneNumberId: null }, { day: body?.day ?? '', id: '0' }),
  );
  expect(erased).toMatchObject({ changed: 1, busy: false });
  const number = { ...account, verifiedName: '', qualityRating: null };
  await followNumbers({ database }, WABA, [number], new Date());
  await drainInbox(database, tools);
  const ids = (await storedEvents(database)).map(({ eventId }) => eventId);
  expect(ids).toEqual(Array.from({ length: 39 }, (_, n) => `wamid.${n}`));
});

test('a body that takes several transactions is parsed once', async () => {
  const { database, tools } = await started();
  const account = { wabaId: WABA, phoneNumberId: NUMBER, displayPhoneNumber: '12025550177' };
  const texts = Array.from({ length: 1_000 }, (_, n) => textMessage(`wamid.${n}`, 'hello'));
  await insertBodies(database, [bodyOf(account, texts)]);
  const { kept, pace } = tools.memory.of(shardOf(WABA));
  // However slow the machine is: with one WABA at a time, every other turn looks for another WABA.
  Object.assign(pace, { size: () => ({ cost: 200, wabas: 100 }) });
  const parsed = new Set();
  let turns = 0;
  for (let isLeft = true; isLeft; turns += 1) {
    isLeft = await takeInBatch(tools);
    for (const { items } of kept.values()) parsed.add(items);
  }
  expect(turns).toBeGreaterThan(2);
  expect(parsed.size).toBe(1);
});

test('once something was ingested, a look opens the partitions of yesterday and later only, however many days are kept', async () => {
  const { database, tools } = await started();
  await query(database, 'select ensure_partitions(current_date - 30, current_date - 1)');
  await insertBodies(database, [fixtureBody('odd_unknown_phone_number')]);
  await takeInBatch(tools);
  await takeInBatch(tools);
  const look = lookOf(tools.memory.of(shardOf(STRANGE_WABA)));
  const plans: string[] = [];
  const explaining = {
    ...database,
    raw: async (text: string, bindings?: Bindings) => {
      const { rows } = await database.raw(`explain ${text}`, bindings);
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
      return await database.raw(text, bindings);
    },
  };
  const opened = async (fromDay: string) => {
    plans.length = 0;
    await findOldestBodies(explaining, [{ ...look, fromDay }]);
    return new Set(plans.join('').match(/inbox_\d{8}/g)).size;
  };
  expect(await opened('-infinity')).toBeGreaterThan(30);
  expect(await opened(look.fromDay)).toBeLessThan(12);
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
      const looks = [lookOf(tools.memory.of(shard))];
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
