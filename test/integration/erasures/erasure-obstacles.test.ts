import { expect, test } from 'vitest';
import { holdIntake } from '../../../src/engine/inbox/intake-lock.ts';
import { shardOf } from '../../../src/engine/inbox/shards.ts';
import { followNumbers } from '../../../src/features/accounts/followed-numbers.ts';
import { startReplay } from '../../../src/features/replays/replays.ts';
import { eraseFromBodies, FIRST_BODY } from '../../../src/ingest/bodies/erase-bodies.ts';
import { retryInbox } from '../../../src/ingest/bodies/quarantine.ts';
import { type EraseTools, eraseNextBatch } from '../../../src/ops/erasures/erase.ts';
import { eraseConversation, eraseCustomer, erasureOf } from '../../../src/ops/erasures/erasures.ts';
import { ObjectStoreUnavailable } from '../../../src/platform/object-store/store-errors.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { objectsHolding, tablesHolding } from '../../support/database-scan.ts';
import { seededDice } from '../../support/seeded-dice.ts';
import { drainInbox, storedEvents, takeIn } from '../../support/take-in.ts';
import {
  attemptAll,
  bodyOf,
  contactOf,
  count,
  type ErasureWorld,
  eraseAll,
  messageOf,
  NUMBER,
  person,
  startErasureWorld,
  statusOf,
  storeFile,
  WABA,
} from './erasure-world.ts';

const ASHA = person('Asha', '5511987650143');
const BO = person('Bo', '4915550009182');
const TRACES = [ASHA.waId, ASHA.userId, ASHA.name, ASHA.text];

/** Messages of Asha, the first of them with files. */
async function write(world: ErasureWorld, { messages = 3, files = 0 }): Promise<void> {
  const image = (n: number) => ({ type: 'image', image: { id: `${n}`, mime_type: 'image/jpeg' } });
  const ofAsha = Array.from({ length: messages }, (_, n) => messageOf(ASHA, n, n < files ? image(n) : {}));
  await takeIn(
    world.database,
    bodyOf([{ contacts: [contactOf(ASHA)], messages: ofAsha }]),
    bodyOf([{ contacts: [contactOf(BO)], messages: [messageOf(BO, 1)] }]),
  );
  for (let n = 0; n < files; n += 1) await storeFile(world, ASHA.wamid(n), Buffer.from(`${ASHA.name} ${n}`));
}

test('while the object store is away an erasure waits and says so; then it goes on, and counts every file once', async () => {
  const world = await startErasureWorld();
  const { database, tools, objectStore } = world;
  await write(world, { files: 3 });
  let removals = 0;
  let isAway = true;
  const remove = async (key: string) => {
    removals += 1;
    if (isAway && removals > 1) throw new ObjectStoreUnavailable('connect ECONNREFUSED');
    return await objectStore.remove(key);
  };
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  const withStore: EraseTools = { ...tools, objectStore: { remove } };
  await expect(eraseAll(withStore, erasureId)).rejects.toThrow('it waits: The object store is away.');
  const waiting = await erasureOf(tools, WABA, erasureId);
  expect(waiting).toMatchObject({ state: 'running', waitsFor: 'The object store is away.', report: null });
  // No file is forgotten that is still in the store.
  expect(await count(database, 'media', 'object_key is not null')).toBe(3);
  isAway = false;
  await eraseAll(withStore, erasureId);
  const done = await erasureOf(tools, WABA, erasureId);
  expect(done).toMatchObject({ state: 'done', waitsFor: null, counts: { files: 3, messages: 3 } });
  expect(await tablesHolding(database, TRACES)).toEqual([]);
});

test('an erasure of which transactions and calls fail half the time ends as one without failures', async () => {
  const world = await startErasureWorld();
  const { database, tools, objectStore } = world;
  await write(world, { messages: 120, files: 2 });
  await attemptAll(database);
  const events = await count(database, 'events', `body like convert_to('%${ASHA.waId}%', 'UTF8')`);
  const dice = seededDice(58);
  let failures = 0;
  const halfTheTime = async <T>(work: () => Promise<T>): Promise<T> => {
    const result = await work();
    if (dice() < 0.5) return result;
    failures += 1;
    throw new Error('cut off');
  };
  const failing: EraseTools = {
    ...tools,
    database: new Proxy(database, {
      get: (target, name, receiver) =>
        name === 'transaction'
          ? (work: Parameters<typeof database.transaction>[0]) =>
              database.transaction((trx) => halfTheTime(async () => await work(trx)))
          : Reflect.get(target, name, receiver),
    }),
    objectStore: { remove: (key) => halfTheTime(() => objectStore.remove(key)) },
    cancelWorkflows: (ids) => halfTheTime(() => tools.cancelWorkflows(ids)),
  };
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  for (let batches = 0, isDone = false; !isDone; batches += 1) {
    expect(batches).toBeLessThan(500);
    try {
      isDone = (await eraseNextBatch(failing, erasureId))?.state === 'done';
    } catch (error) {
      expect(error).toMatchObject({ message: 'cut off' });
    }
  }
  expect(failures).toBeGreaterThan(10);
  const { counts } = await erasureOf(tools, WABA, erasureId);
  expect(counts).toMatchObject({ messages: 120, files: 2, events, contacts: 1, conversations: 1 });
  expect(await tablesHolding(database, TRACES)).toEqual([]);
  expect(await count(database, 'audit_log', `action = 'erasure.done'`)).toBe(1);
});

test('what the customer writes, and upstream says of it, while the erasure runs is of a new customer, and stays', async () => {
  const world = await startErasureWorld();
  const { database, tools } = world;
  await write(world, { messages: 250 });
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  await eraseNextBatch(tools, erasureId);
  const kept: string[] = [];
  for (let n = 0, isDone = false; !isDone; n += 1) {
    await takeIn(
      database,
      bodyOf([
        { contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, `later-${n}`)] },
        // Of a message that another system sent to them.
        { statuses: [statusOf(ASHA, `other-${n}`, 'sent')] },
        { contacts: [contactOf(BO)], messages: [messageOf(BO, `later-${n}`)] },
      ]),
    );
    kept.push(ASHA.wamid(`later-${n}`), ASHA.wamid(`other-${n}`), BO.wamid(`later-${n}`));
    const batch = await eraseNextBatch(tools, erasureId);
    expect(batch?.waitMs).toBe(0);
    isDone = batch?.state === 'done';
  }
  expect(kept.length).toBeGreaterThan(24);
  const eventIds = async () => (await storedEvents(database)).map(({ eventId }) => eventId).toSorted();
  expect(await eventIds()).toEqual([BO.wamid(1), ...kept].toSorted());
  const talks = await query<{ waId: string; messages: number }>(
    database,
    `select k.wa_id as "waId", cast((select count(*) from messages m where m.conversation_id = c.id) as integer) as messages
       from conversations c join contacts k on k.id = c.contact_id order by c.id`,
  );
  const each = kept.length / 3;
  expect(talks).toEqual([
    { waId: BO.waId, messages: each + 1 },
    { waId: ASHA.waId, messages: each },
  ]);
  expect(await count(database, 'message_statuses')).toBe(each);
  // What is said of them afterwards is news, and no repeat of what was erased.
  await takeIn(database, bodyOf([{ statuses: [statusOf(ASHA, 'other-0', 'read')] }]));
  expect((await storedEvents(database)).at(-1)?.body).toContain('"read"');
  expect((await erasureOf(tools, WABA, erasureId)).counts).toMatchObject({ messages: 250, contacts: 1 });
});

test('the customer goes out of bodies that wait or are in quarantine; these are taken in later without them', async () => {
  const world = await startErasureWorld();
  const { database, tools } = world;
  await write(world, {});
  const unknown = { phone_number_id: '800000000000999', display_phone_number: '12025550999' };
  const parked = bodyOf([
    {
      metadata: unknown,
      contacts: [contactOf(ASHA), contactOf(BO)],
      messages: [messageOf(ASHA, 'parked'), messageOf(BO, 'parked')],
    },
  ]);
  const odd = bodyOf([
    { contacts: [contactOf(ASHA)], messages: [{ ...messageOf(ASHA, 'odd'), id: undefined }] },
    { field: 'user_preferences', user_preferences: [{ wa_id: BO.waId, detail: BO.text }] },
  ]);
  await takeIn(database, parked, odd);
  expect(await count(database, 'inbox', `state in ('waiting', 'quarantined')`)).toBe(2);
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  await world.erase(erasureId);
  expect(await tablesHolding(database, TRACES)).toEqual([]);
  expect(await count(database, 'inbox', `state in ('waiting', 'quarantined')`)).toBe(2);
  const numbers = [NUMBER, unknown.phone_number_id].map((phoneNumberId) => ({
    phoneNumberId,
    displayPhoneNumber: '+1 202-555-0100',
    verifiedName: 'Store',
    qualityRating: 'GREEN',
  }));
  await followNumbers({ database }, WABA, numbers, new Date());
  await retryInbox(database, ['quarantined']);
  await drainInbox(database);
  const added = (await storedEvents(database)).map(({ eventId }) => eventId);
  const ofBo = [BO.wamid(1), BO.wamid('parked'), `upstream.user_preferences:${BO.waId}`];
  expect(added.toSorted()).toEqual(ofBo.toSorted());
  expect(await tablesHolding(database, TRACES)).toEqual([]);
});

test('a replay brings nothing of it back, neither by the delivery nor by the time', async () => {
  const world = await startErasureWorld();
  const { database, tools } = world;
  await write(world, {});
  await attemptAll(database);
  const deliveries = await query<{ id: string; event: string }>(
    database,
    `select d.id, e.event_id as event from deliveries d join events e on e.id = d.event_uuid`,
  );
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  await world.erase(erasureId);
  const theirs = deliveries.filter(({ event }) => event !== BO.wamid(1));
  expect(theirs).toHaveLength(3);
  const replay = (selection: object) => startReplay(tools, WABA, selection, 'kim@store.example');
  for (const { id } of theirs) {
    const publicId = `dlv_${id.replaceAll('-', '')}`;
    await expect(replay({ deliveryIds: [publicId] })).rejects.toMatchObject({ name: 'RequestError' });
  }
  await database.raw(`update deliveries set state = 'failed'`);
  expect(await replay({ from: new Date(Date.now() - 3_600_000), to: new Date() })).toMatchObject({
    total: 1,
  });
});

test('reading through bodies that hold nothing of the customer does not wait for intake, nor keep it waiting', async () => {
  const { database } = await startErasureWorld();
  await takeIn(database, bodyOf([{ contacts: [contactOf(BO)], messages: [messageOf(BO, 1)] }]));
  const untils = new Map([[ASHA.waId, 'infinity']]);
  const asha = { wabaId: WABA, untils, isGroup: false, phoneNumberId: NUMBER };
  await database.transaction(async (intake) => {
    await holdIntake(intake, shardOf(WABA));
    const page = await database.transaction((trx) => eraseFromBodies(trx, asha, FIRST_BODY));
    expect(page).toMatchObject({ changed: 0, deleted: 0, busy: false });
  });
});

test('a conversation that turns out to be a double of another one goes with it', async () => {
  const world = await startErasureWorld();
  const { database, tools } = world;
  const { userId, waId } = ASHA;
  const known = {
    contacts: [{ ...contactOf(ASHA), user_id: undefined }],
    messages: [messageOf(ASHA, 1, { from_user_id: undefined })],
  };
  const unknown = { contacts: [{ user_id: userId }], messages: [messageOf(ASHA, 2, { from: undefined })] };
  await takeIn(database, bodyOf([known]), bodyOf([unknown]));
  const [row] = await query<{ id: string }>(
    database,
    'select c.id from conversations c join contacts k on k.id = c.contact_id where k.user_id = :userId',
    { userId },
  );
  const { erasureId } = await eraseConversation(tools, WABA, row?.id ?? '');
  await takeIn(database, bodyOf([{ statuses: [statusOf(ASHA, 'other', 'sent')] }]));
  expect(await count(database, 'conversations', `id = ${row?.id} and merged_into <> id`)).toBe(1);
  await world.erase(erasureId);
  expect(await tablesHolding(database, [waId, userId, ASHA.text])).toEqual([]);
});

test('a file that is given up while others are removed keeps its row until its bytes are removed too', async () => {
  const world = await startErasureWorld();
  const { database, objectStore, tools } = world;
  await write(world, {});
  const upload = async (key: string, state: string) => {
    await objectStore.put(key, [Buffer.from(key)] as never, { contentType: 'image/jpeg' });
    await query(
      database,
      `insert into media_uploads (id, waba_id, state, object_key, file_name, size_bytes, expires_at)
       values (gen_random_uuid(), :waba, :state, :key, 'x.jpg', 5, now() + interval '1 day')`,
      { waba: WABA, state, key },
    );
  };
  await upload('given-up-before', 'deleted');
  await upload('given-up-meanwhile', 'ready');
  const remove = async (key: string) => {
    const kept = await objectStore.remove(key);
    await database.raw(`update media_uploads set state = 'deleted'`);
    return kept;
  };
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
  await eraseAll({ ...tools, objectStore: { remove } }, erasureId);
  const { all } = await objectsHolding(world.config, []);
  expect(all).toEqual(['given-up-meanwhile']);
  expect(await query(database, 'select object_key as key from media_uploads')).toEqual([
    { key: 'given-up-meanwhile' },
  ]);
  expect((await erasureOf(tools, WABA, erasureId)).counts).toMatchObject({ uploads: 1 });
});
