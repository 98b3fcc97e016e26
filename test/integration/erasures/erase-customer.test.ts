import { describe, expect, test } from 'vitest';
import { insertTenant, saveWaba } from '../../../src/accounts/accounts.ts';
import { verifyReport } from '../../../src/erasures/erasure-report.ts';
import {
  eraseConversation,
  eraseCustomer,
  eraseTenant,
  eraseUser,
  eraseWaba,
  erasureOf,
  erasuresOf,
} from '../../../src/erasures/erasures.ts';
import { sweepRepeats } from '../../../src/erasures/repeats.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { insertUser } from '../../../src/users/user-store.ts';
import { objectsHolding, tablesHolding } from '../../support/database-scan.ts';
import { storedEvents, takeIn } from '../../support/take-in.ts';
import {
  attemptAll,
  bodyOf,
  contactOf,
  count,
  type ErasureWorld,
  messageOf,
  NUMBER,
  type Person,
  person,
  startErasureWorld,
  statusOf,
  storeFile,
  WABA,
} from './erasure-world.ts';

const ASHA = person('Asha', '5511987650143');
const BO = person('Bo', '4915550009182');
const GROUP = 'group-447711';

/** Everything by which Asha could be known. */
function tracesOf(who: Person): string[] {
  return [
    who.waId,
    who.userId,
    who.name,
    who.text,
    Buffer.from(`${who.waId}-`).toString('base64').slice(0, 16),
  ];
}

async function customerIdOf(database: Database, who: Person): Promise<string> {
  const [row] = await query<{ id: string }>(database, 'select id from contacts where wa_id = ?', [who.waId]);
  return row?.id ?? '0';
}

/** All kinds of rows that hold something of Asha, among Bo's. */
async function fill(world: ErasureWorld): Promise<{ keys: string[]; body: Buffer }> {
  const { database } = world;
  const image = { type: 'image', image: { id: '77', mime_type: 'image/jpeg', caption: ASHA.text } };
  const order = {
    type: 'order',
    order: {
      catalog_id: 'catalog-1',
      text: ASHA.text,
      product_items: [{ product_retailer_id: 'r1', quantity: 1, item_price: 2, currency: 'USD' }],
    },
  };
  const body = bodyOf([
    { contacts: [contactOf(ASHA), contactOf(BO)], messages: [messageOf(ASHA, 1), messageOf(BO, 1)] },
    { contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 2, image), messageOf(ASHA, 3, order)] },
    { statuses: [statusOf(ASHA, 'out-1', 'sent'), statusOf(BO, 'out-1', 'sent')] },
  ]);
  await takeIn(
    database,
    body,
    // What becomes no event, beside a neighbour that does.
    bodyOf([
      { field: 'user_preferences', user_preferences: [{ wa_id: ASHA.waId, detail: ASHA.text }] },
      { contacts: [contactOf(BO)], messages: [messageOf(BO, 2)] },
      { contacts: [contactOf(ASHA)], messages: [{ ...messageOf(ASHA, 'no-id'), id: undefined }] },
    ]),
    bodyOf([
      {
        contacts: [contactOf(ASHA), contactOf(BO)],
        messages: [messageOf(ASHA, 'g1', { group_id: GROUP }), messageOf(BO, 'g1', { group_id: GROUP })],
      },
    ]),
    bodyOf([
      {
        statuses: [
          { ...statusOf(ASHA, 'pay', 'captured'), type: 'payment', payment: { reference_id: 'ref-asha-1' } },
          { ...statusOf(BO, 'pay', 'captured'), type: 'payment', payment: { reference_id: 'ref-bo-1' } },
        ],
      },
    ]),
  );
  const keys = [await storeFile(world, ASHA.wamid(2), Buffer.from(`file of ${ASHA.name}`))];
  keys.push(...(await send(world, ASHA)));
  await send(world, BO);
  await attemptAll(database);
  return { keys, body };
}

/** A message of the tenant's to someone, with all that is kept beside it. */
async function send({ database, objectStore }: ErasureWorld, who: Person): Promise<string[]> {
  const key = `up${who.waId}`;
  await objectStore.put(key, [Buffer.from(`for ${who.name}`)] as never, { contentType: 'image/jpeg' });
  const uuid = `019aa2b3-7c4d-7e8f-9a0b-${who.waId.padStart(12, '0').slice(-12)}`;
  await execute(
    database,
    `insert into media_uploads (id, waba_id, state, object_key, file_name, size_bytes, expires_at)
     values (?, ?, 'ready', ?, ?, 5, now() + interval '1 day')`,
    [uuid, WABA, key, `for ${who.name}.jpg`],
  );
  const [row] = await query<{ id: string }>(
    database,
    `insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content)
     select ?, ?, c.id, 'outbound', ?, 'text', ? from conversations c join contacts k on k.id = c.contact_id
      where k.wa_id = ? returning id`,
    [WABA, NUMBER, who.wamid('out-1'), JSON.stringify({ to: who.waId, text: who.text }), who.waId],
  );
  const messageId = row?.id ?? '';
  await execute(
    database,
    `insert into outbound_messages (message_id, waba_id, phone_number_id, recipient, state, upstream_id, media_ids)
     values (?, ?, ?, ?, 'accepted', ?, array[cast(? as uuid)])`,
    [messageId, WABA, NUMBER, who.waId, who.wamid('out-1'), uuid],
  );
  await execute(
    database,
    `insert into idempotency_keys (waba_id, operation, key, fingerprint, message_id, held_until, response_body)
     values (?, 'send', ?, '\\x00', ?, now(), ?)`,
    [WABA, `key-${who.waId}`, messageId, JSON.stringify({ id: who.wamid('out-1'), to: who.waId })],
  );
  await execute(database, 'insert into phone_aliases (waba_id, phone, wa_id) values (?, ?, ?)', [
    ...[WABA, `${who.waId}9`, who.waId],
  ]);
  await execute(
    database,
    'insert into send_pacing (phone_number_id, recipient, free_at) values (?, ?, now())',
    [...[NUMBER, who.waId]],
  );
  return [key];
}

/** What is stored of everyone else, without what changes by itself. */
async function othersOf(database: Database): Promise<unknown> {
  const events = (await storedEvents(database)).filter(
    ({ body }) => body === null || !body.includes(ASHA.waId),
  );
  const rows = await query(
    database,
    `select m.upstream_id, m.content, c.id, k.profile_name from messages m
       join conversations c on c.id = m.conversation_id left join contacts k on k.id = c.contact_id
      where m.content not like '%${ASHA.waId}%' order by m.id`,
  );
  return { events: events.filter(({ type }) => type !== 'order'), rows };
}

describe('erasing a customer', () => {
  test('leaves nothing of them in any table or object, and everyone else as they were', async () => {
    const world = await startErasureWorld();
    const { database, config, tools } = world;
    const { keys } = await fill(world);
    const before = await othersOf(database);
    expect((await tablesHolding(database, [ASHA.waId])).length).toBeGreaterThan(12);
    expect((await objectsHolding(config, [ASHA.name])).holding.sort()).toEqual([...keys].sort());
    const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
    await world.erase(erasureId);
    expect(await tablesHolding(database, [...tracesOf(ASHA), 'ref-asha-1', ...keys.slice(1)])).toEqual([]);
    expect((await objectsHolding(config, [ASHA.name])).holding).toEqual([]);
    expect(await othersOf(database)).toEqual(before);
    expect(world.cancelled.filter((id) => id.startsWith('delivery/')).length).toBeGreaterThan(4);
    expect(await count(database, 'workflow_tasks')).toBe(0);
    const queued = `event_uuid not in (select id from events)`;
    expect(await count(database, 'delivery_queue', queued)).toBe(0);
    expect(await count(database, 'delivery_queue')).toBeGreaterThan(0);
    const done = await erasureOf(tools, WABA, erasureId);
    expect(done).toMatchObject({ state: 'done', kind: 'customer', requestedBy: 'operator command' });
    expect(done.counts).toMatchObject({
      contacts: 1,
      conversations: 1,
      files: 1,
      uploads: 1,
      idempotencyKeys: 1,
    });
    expect(verifyReport(done.report, tools.encryptionKeys)).toBe('valid');
  });

  test('what upstream repeats or says of it later does not come back; new messages are accepted', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    const { body } = await fill(world);
    const { erasureId } = await eraseCustomer(tools, WABA, {
      customerId: await customerIdOf(database, ASHA),
    });
    await world.erase(erasureId);
    const before = await storedEvents(database);
    // Deduplication keys are kept for 14 days; the tombstones hold on without them.
    await execute(database, 'delete from dedup_keys');
    await takeIn(
      database,
      bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 1)] }]),
      bodyOf([
        { statuses: [statusOf(ASHA, 'out-1', 'read')] },
        { field: 'unknown_field' },
        { contacts: [contactOf(BO)], messages: [messageOf(BO, 'new')] },
      ]),
    );
    await sweepRepeats(tools);
    expect(await tablesHolding(database, tracesOf(ASHA))).toEqual([]);
    const added = (await storedEvents(database)).slice(before.length);
    expect(added.map(({ eventId }) => eventId)).toEqual([BO.wamid('new')]);
    expect(body.includes(ASHA.waId)).toBe(true);
    await takeIn(database, bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 'later')] }]));
    expect((await storedEvents(database)).at(-1)?.eventId).toBe(ASHA.wamid('later'));
    expect(await customerIdOf(database, ASHA)).not.toBe('0');
  });

  test('a repeat is taken out in a later sweep, whether its sweep died, was cut off, or had passed it over', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    await fill(world);
    const { erasureId } = await eraseCustomer(tools, WABA, {
      customerId: await customerIdOf(database, ASHA),
    });
    await world.erase(erasureId);
    await execute(database, 'delete from dedup_keys');
    const repeat = () =>
      takeIn(database, bodyOf([{ contacts: [contactOf(ASHA)], messages: [messageOf(ASHA, 1)] }]));
    const notes = () => count(database, 'erased_repeats');
    await repeat();
    let transactions = 0;
    const dying: Database['transaction'] = async (work) => {
      transactions += 1;
      if (transactions > 1) throw new Error('killed');
      return await database.transaction(work);
    };
    const raw: Database['raw'] = async (...given) => {
      if (transactions > 1) throw new Error('killed');
      return await database.raw(...given);
    };
    await expect(sweepRepeats({ database: { ...database, raw, transaction: dying } })).rejects.toThrow(
      'killed',
    );
    expect(await notes()).toBe(1);
    const ending = new AbortController();
    const cutting: Database['transaction'] = async (work) => {
      const result = await database.transaction(work);
      ending.abort();
      return result;
    };
    await sweepRepeats({ database: { ...database, transaction: cutting } }, ending.signal);
    expect(await notes()).toBe(1);
    expect(await tablesHolding(database, tracesOf(ASHA))).not.toEqual([]);
    let pages = -1;
    const behind: Database['transaction'] = async (work) => {
      const result = await database.transaction(work);
      pages += 1;
      const [left] = await query(
        database,
        `select 1 from inbox where position('${ASHA.waId}'::bytea in body) > 0`,
      );
      if (pages > 0 && left === undefined && pages < 100) {
        pages = 100;
        await repeat();
      }
      return result;
    };
    await sweepRepeats({ database: { ...database, transaction: behind } });
    expect(await notes()).toBe(1);
    await sweepRepeats(tools);
    expect(await tablesHolding(database, tracesOf(ASHA))).toEqual([]);
    expect(await notes()).toBe(0);
  });

  test('a conversation goes with its customer if they have no other', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    await fill(world);
    const [row] = await query<{ id: string }>(
      database,
      'select c.id from conversations c join contacts k on k.id = c.contact_id where k.wa_id = ?',
      [ASHA.waId],
    );
    const { erasureId } = await eraseConversation(tools, WABA, row?.id ?? '');
    await world.erase(erasureId);
    const kept = (await tablesHolding(database, [ASHA.waId, ASHA.name])).map((found) => found.split(':')[0]);
    // What they wrote in a group is another conversation.
    expect([...new Set(kept)].map((name) => name?.replace(/_\d+$/, '')).sort()).toEqual(
      expect.arrayContaining(['messages']),
    );
    expect(await count(database, 'messages', `group_sender is null and content like '%${ASHA.waId}%'`)).toBe(
      0,
    );
    expect(await count(database, 'contacts', `wa_id = '${ASHA.waId}'`)).toBe(0);
  });
});

describe('erasing an account', () => {
  test('a WABA goes with its history, and is free for another tenant, who does not see what was erased before', async () => {
    const world = await startErasureWorld();
    const { database, config, tools } = world;
    await fill(world);
    const earlier = await eraseCustomer(tools, WABA, { phone: BO.waId });
    await world.erase(earlier.erasureId);
    expect(await erasuresOf(tools, WABA)).toHaveLength(1);
    const { erasureId } = await eraseWaba(tools, WABA);
    await world.erase(erasureId);
    const traces = [...tracesOf(ASHA), ...tracesOf(BO), GROUP, 'tenant.example', NUMBER];
    expect(await tablesHolding(database, traces)).toEqual([]);
    const named = (await tablesHolding(database, [WABA])).map((found) => found.split(':')[0]);
    expect(named).toEqual(['audit_log', 'erasures']);
    expect((await objectsHolding(config, [])).all).toEqual([]);
    expect((await erasureOf(tools, null, erasureId)).counts).toMatchObject({ wabas: 1, contacts: 1 });
    const otherTenant = await insertTenant(database, 'Another');
    await saveWaba(database, otherTenant, { wabaId: WABA, accessTokenSealed: null });
    expect(await erasuresOf(tools, WABA)).toEqual([]);
    await expect(erasureOf(tools, WABA, earlier.erasureId)).rejects.toMatchObject({
      code: 'unknown_erasure',
    });
    expect(await erasuresOf(tools, null)).toHaveLength(2);
  });

  test('a WABA of which only statuses are left goes with them', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    await execute(
      database,
      `insert into message_statuses (phone_number_id, upstream_id, status, participant, content)
       values (?, 'wamid.elsewhere', 'read', '', '{"recipient_id":"${ASHA.waId}"}')`,
      [NUMBER],
    );
    const { erasureId } = await eraseWaba(tools, WABA);
    await world.erase(erasureId);
    expect(await tablesHolding(database, [ASHA.waId])).toEqual([]);
    expect((await erasureOf(tools, null, erasureId)).counts).toMatchObject({ wabas: 1 });
  });

  test('files that have expired are in the way of no erasure', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    await fill(world);
    await database.raw(
      `insert into erased_files (message_id, waba_id, object_key) select message_id, waba_id, object_key from media;
       update media set state = 'expired', object_key = null`,
    );
    const { erasureId } = await eraseCustomer(tools, WABA, { phone: ASHA.waId });
    await world.erase(erasureId);
    const whole = await eraseWaba(tools, WABA);
    await world.erase(whole.erasureId);
    expect(await tablesHolding(database, tracesOf(ASHA))).toEqual([]);
  });

  test('a tenant goes with its WABAs and the users that belong nowhere else', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    await fill(world);
    const [tenant] = await query<{ id: string }>(
      database,
      'select tenant_id as id from wabas where waba_id = ?',
      [WABA],
    );
    const kim = { email: 'kim.only@store.example', name: 'Kim', isOperator: false, passwordHash: null };
    const userId = await insertUser(database, kim);
    await execute(database, `insert into memberships (user_id, tenant_id, role) values (?, ?, 'admin')`, [
      ...[userId, tenant?.id ?? ''],
    ]);
    const { erasureId } = await eraseTenant(tools, tenant?.id ?? '');
    await world.erase(erasureId);
    expect(await tablesHolding(database, [...tracesOf(ASHA), ...tracesOf(BO), kim.email])).toEqual([]);
    expect(await count(database, 'tenants')).toBe(1);
    // Who removed it stays in the audit log.
    const named = (await tablesHolding(database, ['Fixture Store'])).map((found) => found.split(':')[0]);
    expect(named).toEqual(['audit_log']);
  });

  test('a user goes, with the name where it stood beside what they did', async () => {
    const world = await startErasureWorld();
    const { database, tools } = world;
    const kim = { email: 'kim@store.example', name: 'Kim Quill', isOperator: false, passwordHash: null };
    const userId = await insertUser(database, kim);
    await execute(
      database,
      `insert into replays (waba_id, selection, state, total, requested_by) values (?, '{}', 'done', 0, ?)`,
      [WABA, kim.email],
    );
    const authority = { actor: tools.actor, tenantId: null, userId: null };
    const { erasureId } = await eraseUser(tools, authority, userId);
    await world.erase(erasureId);
    expect(await tablesHolding(database, [kim.email, kim.name])).toEqual([]);
    const [replay] = await query<{ by: string }>(database, 'select requested_by as by from replays');
    expect(replay?.by).toBe(`erased user ${userId}`);
    const operator = await insertUser(database, { ...kim, email: 'op@host.example', isOperator: true });
    await expect(eraseUser(tools, authority, operator)).rejects.toMatchObject({ code: 'last_operator' });
    const other = await insertUser(database, { ...kim, email: 'two@host.example', isOperator: true });
    const both = [await eraseUser(tools, authority, operator), await eraseUser(tools, authority, other)];
    await world.erase(both[0]?.erasureId ?? '');
    await expect(world.erase(both[1]?.erasureId ?? '')).rejects.toThrow('the only operator');
    expect(await count(database, 'users', 'is_operator')).toBe(1);
  });
});
