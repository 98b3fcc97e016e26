import { expect, test } from 'vitest';
import { eraseCustomer } from '../../../src/ops/erasures/erasures.ts';
import { exportCustomer } from '../../../src/ops/erasures/export-customer.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { tablesHolding } from '../../support/database-scan.ts';
import { storedEvents, takeIn } from '../../support/take-in.ts';
import { bodyOf, type ErasureWorld, startErasureWorld, unzipped, WABA } from './erasure-world.ts';

const OLD = '5511987650143';
const NEW = '5511987659999';
const GROUP = { group_id: 'group-447711' };

type Content = Record<string, unknown>;

const text = (from: string, id: string, body: string, more: Content = {}) => ({
  from,
  id,
  timestamp: '1790000077',
  type: 'text',
  text: { body },
  ...more,
});
const contact = (name: string, waId: string) => ({ profile: { name }, wa_id: waId });
const statusOf = (id: string, status: string, recipient: string) =>
  bodyOf([{ statuses: [{ id, status, timestamp: '1790000078', recipient_id: recipient }] }]);

/** Ana has had the old number and written by it, also in a group; now it is Ben's, who writes by it. */
async function passOn({ database }: ErasureWorld): Promise<void> {
  const system = { type: 'user_changed_number', wa_id: NEW, body: 'changed' };
  await takeIn(
    database,
    bodyOf([{ contacts: [contact('Ana', OLD)], messages: [text(OLD, 'wamid.a1', 'of Ana')] }]),
    bodyOf([
      { contacts: [contact('Ana', OLD)], messages: [text(OLD, 'wamid.a2', 'of Ana in a group', GROUP)] },
    ]),
    statusOf('wamid.a-other', 'delivered', OLD),
  );
  const changed = { from: OLD, id: 'wamid.a3', timestamp: '1790000077', type: 'system', system };
  await takeIn(database, bodyOf([{ messages: [changed] }]));
  await takeIn(
    database,
    bodyOf([
      {
        contacts: [contact('Ben', OLD)],
        messages: [text(OLD, 'wamid.b1', 'of Ben'), text(OLD, 'wamid.b2', 'to Ben')],
      },
    ]),
    bodyOf([
      { contacts: [contact('Ben', OLD)], messages: [text(OLD, 'wamid.b3', 'of Ben in a group', GROUP)] },
    ]),
  );
  await execute(database, `update messages set direction = 'outbound' where upstream_id = 'wamid.b2'`);
  await takeIn(database, statusOf('wamid.b2', 'delivered', OLD), statusOf('wamid.b-other', 'delivered', OLD));
}

const rowsOf = async ({ database }: ErasureWorld) => ({
  contacts: await query(database, `select * from contacts where wa_id = '${OLD}'`),
  messages: await query(database, `select * from messages where upstream_id like 'wamid.b%' order by id`),
  statuses: await query(database, `select * from message_statuses where upstream_id like 'wamid.b%'`),
  states: await query(database, `select * from message_states where upstream_id like 'wamid.b%' order by 2`),
  events: (await storedEvents(database)).filter(({ eventId }) => eventId.startsWith('wamid.b')),
});

test('who has had a number before goes without what belongs to the one who has it now', async () => {
  const world = await startErasureWorld();
  const { database, tools } = world;
  await passOn(world);
  await execute(database, 'insert into phone_aliases (waba_id, phone, wa_id) values (:waba, :old, :old2)', {
    waba: WABA,
    old: `${OLD}9`,
    old2: OLD,
  });
  const before = await rowsOf(world);
  expect(before.events).toHaveLength(5);
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: NEW });
  await world.erase(erasureId);
  expect(await rowsOf(world)).toEqual(before);
  expect(await tablesHolding(database, ['of Ana', 'Ana"', NEW, 'wamid.a'])).toEqual([]);
  expect(await query(database, 'select 1 from phone_aliases')).toHaveLength(1);
  await takeIn(database, statusOf('wamid.b2', 'read', OLD));
  const read = await query(database, `select upstream_id as id from message_states where status = 'read'`);
  expect(read).toEqual([{ id: 'wamid.b2' }]);
});

test('a message of the own number that a customer quotes does not lead to what is about others', async () => {
  const world = await startErasureWorld();
  const { database, tools } = world;
  const context = { from: '12025550100', id: 'wamid.quoted' };
  const quoting = { context, ...text(NEW, 'wamid.a1', 'of Ana') };
  await takeIn(
    database,
    bodyOf([{ contacts: [contact('Ana', NEW)], messages: [quoting] }]),
    statusOf('wamid.b-other', 'delivered', OLD),
  );
  const { erasureId } = await eraseCustomer(tools, WABA, { phone: NEW });
  await world.erase(erasureId);
  expect((await storedEvents(database)).map(({ eventId }) => eventId)).toEqual(['wamid.b-other']);
});

/** Ana's user id changed; in between she wrote alone and in a group. */
async function changeUserId({ database }: ErasureWorld, phone: string | null): Promise<void> {
  const own = phone === null ? {} : { from: phone };
  const of = (userId: string, id: string, more: Content) =>
    bodyOf([
      {
        contacts: [
          { profile: { name: 'Ana Quill' }, user_id: userId, ...(phone === null ? {} : { wa_id: phone }) },
        ],
        messages: [{ ...own, from_user_id: userId, id, timestamp: '1790000077', ...more }],
      },
    ]);
  const said = (body: string) => ({ type: 'text', text: { body } });
  const system = { type: 'user_changed_user_id', user_id: 'US.new222', previous_user_id: 'US.old111' };
  await takeIn(database, of('US.old111', 'wamid.a1', said('secret one')));
  await takeIn(database, of('US.old111', 'wamid.a2', { ...said('secret in a group'), ...GROUP }));
  await takeIn(database, of('US.new222', 'wamid.a3', { type: 'system', system }));
  await takeIn(database, of('US.new222', 'wamid.a4', said('secret two')));
}

for (const phone of [null, OLD]) {
  const who = phone === null ? 'only user ids' : 'a phone number too';
  test(`a former user id is looked for, of a customer with ${who}, by export and erasure`, async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    await changeUserId(world, phone);
    const actor = { ...tools, objectStore: world.objectStore };
    const { archive } = await exportCustomer(actor, WABA, { userId: 'US.new222' });
    const exported = unzipped(Buffer.concat(await archive.toArray())).get('messages.ndjson');
    expect(String(exported)).toContain('secret in a group');
    const { erasureId } = await eraseCustomer(tools, WABA, { userId: 'US.new222' });
    await world.erase(erasureId);
    const traces = ['secret', 'US.old111', 'US.new222', 'Quill'];
    expect(await tablesHolding(database, traces)).toEqual([]);
  });
}
