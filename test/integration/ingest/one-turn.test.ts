import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { endProbing, startProbing } from '../../../src/engine/endpoint/endpoint-health.ts';
import type { SignedBody } from '../../../src/engine/inbox/bodies.ts';
import { erasedName, mergeCustomers } from '../../../src/features/messages/messages.ts';
import { sendMarker } from '../../../src/features/messages/statuses.ts';
import { makeDirectIntake } from '../../../src/ingest/intake/direct-intake.ts';
import { isPlain } from '../../../src/ingest/intake/known-customers.ts';
import { guessOf, ingestGuessed } from '../../../src/ingest/intake/one-turn.ts';
import { originsOf } from '../../../src/ingest/intake/owners.ts';
import { readAhead } from '../../../src/ingest/intake/read-ahead.ts';
import { makeIntakeMemory } from '../../../src/ingest/intake/shard-memory.ts';
import { insertBodies, newBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { splitUpstreamBody } from '../../../src/ingest/split/upstream-items.ts';
import { type Database, openDatabase } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import {
  ACCOUNT,
  bodyOf,
  imageMessage,
  messageStatus,
  textMessage,
} from '../../support/load/upstream-bodies.ts';
import { drainInbox, ENDLESS_PATIENCE, intakeTools, storedEvents } from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';
import { eventually } from '../../support/webhook-receiver.ts';
import { type PostgresProxy, startPostgresProxy } from '../api/postgres-proxy.ts';

let database: Database;
let proxy: PostgresProxy;
let keepAll: (bodies: readonly Buffer[]) => Promise<boolean>;
/** What an ingress and a worker do. */
let acknowledge: (...bodies: Buffer[]) => Promise<'at once' | 'later'>;
const keep = async (body: Buffer) => await keepAll([body]);

const message = (id: string) => bodyOf(ACCOUNT, [textMessage(id, 'hello')]);

beforeEach(async () => {
  const made = await testWorkerDatabase();
  database = made.database;
  await seedFixtureAccounts(database);
  await addEndpoint(database, ACCOUNT.wabaId, 'https://one.example/hook');
  proxy = await startPostgresProxy(made.url);
  const own = openDatabase({ url: proxy.url, poolMax: 1, applicationName: 'worker', fixedPlans: true });
  onTestFinished(() => own.destroy());
  const claims = { take: () => true, carry: () => undefined, cancel: () => undefined };
  const directClaims = () => ({ ...claims, token: randomUUID(), leaseMs: 60_000 });
  const idle = { isIdle: () => true };
  const direct = makeDirectIntake({ ...intakeTools(own), directClaims }, idle, ENDLESS_PATIENCE);
  const turns = intakeTools(database);
  keepAll = async (bodies) => {
    const given = bodies.map((body): SignedBody => ({ body, signedFor: null }));
    const { usual, isKept } = direct(given, () => undefined);
    return usual.length === 0 && (await isKept);
  };
  acknowledge = async (...bodies) => {
    if (await keepAll(bodies)) return 'at once';
    await insertBodies(database, bodies);
    await drainInbox(database, turns);
    return 'later';
  };
  // Whose the number is, is read ahead, and the customer is made.
  expect(await keep(message('wamid.1'))).toBe(true);
});

/** How often the process has written to PostgreSQL until the body was taken in. */
async function writesFor(body: Buffer): Promise<number> {
  const before = proxy.writes();
  expect(await keep(body)).toBe(true);
  return proxy.writes() - before;
}

test('a message of a known customer is kept, taken in and committed in one round trip, one with a file in a turn', async () => {
  expect(await writesFor(message('wamid.5'))).toBe(1);
  expect(await writesFor(message('wamid.6'))).toBe(1);
  const two = [textMessage('wamid.7', 'x'), textMessage('wamid.8', 'y')];
  expect(await writesFor(bodyOf(ACCOUNT, two))).toBe(1);
  const before = proxy.writes();
  expect(await acknowledge(bodyOf(ACCOUNT, [imageMessage('wamid.9', '123')]))).toBe('later');
  expect(proxy.writes()).toBe(before);
  const eventIds = (await storedEvents(database)).map(({ eventId }) => eventId);
  expect(eventIds).toEqual([1, 5, 6, 7, 8, 9].map((n) => `wamid.${n}`));
});

const status = (id: string, state: string) => bodyOf(ACCOUNT, [messageStatus(id, state)]);

/** What is stored of the message of a status. */
async function stateOf(upstreamId: string) {
  const [row] = await query<{ state: string; statuses: string[] }>(
    database,
    `select status as state, array(select m.status from message_statuses m where m.upstream_id = s.upstream_id order by 1) as statuses
       from message_states s where upstream_id = :upstreamId`,
    { upstreamId },
  );
  return row;
}

/** The conversations of the events of statuses, in the order of their event ids. */
async function conversationsOfStatuses() {
  const rows = await query<{ id: string | null }>(
    database,
    `select conversation_id as id from events where event_type = 'status' order by event_id, sequence`,
  );
  return rows.map(({ id }) => id);
}

describe('statuses', () => {
  test('of a known customer take one round trip, also beside messages, and move the state forward only', async () => {
    expect(await writesFor(status('wamid.out', 'read'))).toBe(1);
    expect(await writesFor(status('wamid.out', 'delivered'))).toBe(1);
    const mixed = bodyOf(ACCOUNT, [
      messageStatus('wamid.out', 'sent'),
      textMessage('wamid.5', 'hello'),
      messageStatus('wamid.other', 'sent'),
      messageStatus('wamid.other', 'delivered'),
    ]);
    expect(await writesFor(mixed)).toBe(1);
    expect(await stateOf('wamid.out')).toEqual({ state: 'read', statuses: ['delivered', 'read', 'sent'] });
    const text = `select sum(sent)::int as sent, sum(delivered)::int as delivered, sum(read)::int as read from usage_changes`;
    expect(await query(database, text)).toEqual([{ sent: 2, delivered: 2, read: 1 }]);
    expect(await stateOf('wamid.other')).toEqual({ state: 'delivered', statuses: ['delivered', 'sent'] });
    const [conversation] = (await outcome()).conversations;
    expect(await conversationsOfStatuses()).toEqual(Array.from({ length: 5 }, () => conversation));
    expect((await storedEvents(database)).map(({ eventId }) => eventId)).toContain('wamid.5');
  });

  test('for somebody who never wrote have no conversation until that person writes', async () => {
    const toAda = (id: string) => Buffer.from(String(status(id, 'sent')).replaceAll(CUSTOMER, ADA));
    // Behind a look at who that is.
    expect(await writesFor(toAda('wamid.5'))).toBe(2);
    expect(await writesFor(toAda('wamid.6'))).toBe(1);
    expect(await keepAll([toAda('wamid.7'), bodyFrom('wamid.8', ADA), toAda('wamid.9')])).toBe(true);
    const conversation = (await outcome()).conversations.at(-1);
    expect(await writesFor(toAda('wamid.99'))).toBe(1);
    const none = [null, null];
    expect((await conversationsOfStatuses()).slice(0, 2)).toEqual(none);
    expect((await conversationsOfStatuses()).slice(-2)).toEqual([conversation, conversation]);
  });

  test('that came before count once', async () => {
    expect(await acknowledge(status('wamid.out', 'sent'))).toBe('at once');
    expect(await acknowledge(status('wamid.out', 'sent'))).toBe('later');
    expect(await acknowledge(status('wamid.out', 'read'), status('wamid.out', 'read'))).toBe('later');
    expect(await conversationsOfStatuses()).toHaveLength(2);
  });

  test('of an erased message come again as nothing, by its id and by its mark', async () => {
    const mark = sendMarker('17');
    for (const name of ['wamid.5', mark])
      await query(
        database,
        `insert into erased_items (key) select sha256(salt || convert_to(:account, 'UTF8')) from erasure_salt`,
        { account: erasedName(ACCOUNT, name) },
      );
    expect(await acknowledge(status('wamid.out', 'sent'))).toBe('at once');
    expect(await acknowledge(status('wamid.5', 'read'))).toBe('later');
    const marked = messageStatus('wamid.6', 'read');
    marked.json.biz_opaque_callback_data = mark;
    expect(await acknowledge(bodyOf(ACCOUNT, [marked]))).toBe('later');
    expect(await conversationsOfStatuses()).toHaveLength(1);
    expect(await stateOf('wamid.5')).toBeUndefined();
  });

  test('with the mark of a send that got no answer end it', async () => {
    await query(
      database,
      `with message as (
         insert into messages (waba_id, phone_number_id, conversation_id, direction, type, content)
         select waba_id, phone_number_id, conversation_id, 'outbound', 'text', '{}' from messages limit 1
         returning id, waba_id, phone_number_id
       )
       insert into outbound_messages (message_id, waba_id, phone_number_id, recipient, state, attempts)
       select id, waba_id, phone_number_id, '12025550143', 'unknown', 1 from message`,
    );
    const [sent] = await query<{ id: string }>(database, 'select message_id as id from outbound_messages');
    const marked = messageStatus('wamid.sent', 'sent');
    marked.json.biz_opaque_callback_data = sendMarker(sent?.id ?? '');
    expect(await acknowledge(bodyOf(ACCOUNT, [marked]))).toBe('later');
    const [row] = await query(
      database,
      'select o.state, m.upstream_id as "upstreamId" from outbound_messages o join messages m on m.id = o.message_id',
    );
    expect(row).toEqual({ state: 'accepted', upstreamId: 'wamid.sent' });
    // From now on its statuses are like any other, once what the first led to is announced.
    let count = 0;
    const another = async () => {
      count += 1;
      const next = messageStatus('wamid.sent', `state ${count}`);
      next.json.biz_opaque_callback_data = sendMarker(sent?.id ?? '');
      const before = proxy.writes();
      const way = await acknowledge(bodyOf(ACCOUNT, [next]));
      return way === 'at once' ? proxy.writes() - before : null;
    };
    await eventually('a status takes one round trip', another, { is: 1 });
  });
});

const CUSTOMER = '12025550143';
const ADA = '16505550001';
const BEN = '16505550002';

const bodyFrom = (id: string, phone: string, userId: string | null = null) => {
  const text = String(message(id)).replaceAll(CUSTOMER, phone);
  if (userId === null) return Buffer.from(text);
  return Buffer.from(text.replace('"from":', `"from_user_id":"${userId}","from":`));
};

test('several bodies of customers who are known or never wrote take one statement together', async () => {
  const senders = [ADA, BEN, ADA];
  const bodies = [
    message('wamid.5'),
    ...senders.map((phone, n) => bodyFrom(`wamid.${n + 6}`, phone)),
    message('wamid.9'),
  ];
  const before = proxy.writes();
  expect(await keepAll(bodies)).toBe(true);
  // One looks at who is not known, without a lock.
  expect(proxy.writes() - before).toBe(2);
  const eventIds = (await storedEvents(database)).map(({ eventId }) => eventId);
  expect(eventIds).toEqual([1, 5, 6, 7, 8, 9].map((n) => `wamid.${n}`));
  const [known, , first, second, again, last] = (await outcome()).conversations;
  expect([again, last]).toEqual([first, known]);
  expect(new Set([known, first, second]).size).toBe(3);
  const bodiesInOrder = await query<{ body: Buffer }>(
    database,
    `select body from inbox where state = 'done' order by id desc limit 5`,
  );
  expect(bodiesInOrder.map(({ body }) => body).reverse()).toEqual(bodies);
  // They are known from now on.
  expect(await writesFor(bodyFrom('wamid.10', BEN))).toBe(1);
});

test('one person under two ids in one batch is one customer', async () => {
  const bodies = [
    bodyFrom('wamid.5', ADA),
    bodyFrom('wamid.6', ADA, 'US.17'),
    bodyFrom('wamid.7', BEN, 'US.18'),
  ];
  expect(await acknowledge(...bodies)).toBe('later');
  const [, first, second, third] = (await outcome()).conversations;
  expect(second).toBe(first);
  expect(third).not.toBe(first);
  const contacts = await query(
    database,
    'select user_id as "userId", wa_id as "waId" from contacts order by id desc limit 2',
  );
  expect(contacts.reverse()).toEqual([
    { userId: 'US.17', waId: ADA },
    { userId: 'US.18', waId: BEN },
  ]);
});

test('a customer whom another process stores behind the look is stored once', async () => {
  const memory = makeIntakeMemory();
  const body = bodyFrom('wamid.5', ADA);
  const [part] = newBodies([{ body, signedFor: null }]);
  if (part === undefined) throw new Error('the body has a part');
  const { items } = splitUpstreamBody(body);
  const plain = items.filter(isPlain);
  const origins = originsOf([{ body: { signedFor: null, notes: null }, items: plain }]);
  const batch = { bodies: [part], items: plain, shards: [part.shard], origins };
  const ahead = await readAhead(database, memory, batch);
  const guess = ahead && guessOf(memory, batch, { ...ahead, mostDeliveries: 10 });
  if (guess === null) throw new Error('everything is known');
  await query(database, 'insert into contacts (waba_id, wa_id) values (:wabaId, :ada)', {
    wabaId: ACCOUNT.wabaId,
    ada: ADA,
  });
  const ways = { claimer: null, waitMs: 1_000, onSent: () => undefined };
  expect(await ingestGuessed(database, guess, ways)).toBeNull();
  expect(await storedEvents(database)).toHaveLength(1);
  await query(database, 'delete from contacts where wa_id = :ada', { ada: ADA });
  expect(await ingestGuessed(database, guess, ways)).toEqual([]);
  expect(await storedEvents(database)).toHaveLength(2);
});

/** The conversations of the messages, in their order, and the endpoints that the last event goes to. */
async function outcome() {
  const conversations = await query<{ id: string }>(
    database,
    'select conversation_id as id from messages order by messages.id',
  );
  const endpoints = await query<{ id: string }>(
    database,
    `select endpoint_id as id from deliveries
      where event_uuid = (select id from events order by day desc, id desc limit 1) order by endpoint_id`,
  );
  return { conversations: conversations.map(({ id }) => id), endpoints: endpoints.map(({ id }) => id) };
}

describe('what another process changed meanwhile holds', () => {
  test('a new endpoint', async () => {
    const { id } = await addEndpoint(database, ACCOUNT.wabaId, 'https://two.example/hook');
    expect(await acknowledge(message('wamid.5'))).toBe('later');
    expect((await outcome()).endpoints).toEqual(['1', id]);
    // Read ahead again.
    expect(await writesFor(message('wamid.6'))).toBe(3);
    expect(await writesFor(message('wamid.7'))).toBe(1);
    expect((await outcome()).endpoints).toEqual(['1', id]);
  });

  test('an endpoint that wants no messages any more', async () => {
    await database.raw(`update webhook_endpoints set event_types = '{status}', version = version + 1`);
    expect(await acknowledge(message('wamid.5'))).toBe('later');
    expect((await outcome()).endpoints).toEqual([]);
  });

  test('an endpoint that takes nothing any more, and one that is back', async () => {
    const next = async (id: string) => {
      const way = await acknowledge(message(id));
      const text = `select q.state from delivery_queue q join events e on e.id = q.event_uuid where e.event_id = :id`;
      return [way, ...(await query<{ state: string }>(database, text, { id })).map(({ state }) => state)];
    };
    const stop = { probeAfterMs: 60_000, reason: 'it fails' };
    expect(await next('wamid.5')).toEqual(['at once', 'claimed']);
    await database.transaction((trx) => startProbing(trx, '1', stop));
    expect(await next('wamid.6')).toEqual(['later', 'due']);
    expect(await next('wamid.7')).toEqual(['at once', 'due']);
    await database.transaction((trx) => endProbing(trx, '1'));
    expect(await next('wamid.8')).toEqual(['later', 'due']);
    expect(await next('wamid.9')).toEqual(['at once', 'claimed']);
  });

  test('another name of the customer', async () => {
    await database.raw(`update contacts set profile_name = 'another'`);
    expect(await acknowledge(message('wamid.5'))).toBe('later');
    const rows = await query<{ name: string }>(database, 'select profile_name as name from contacts');
    expect(rows.map(({ name }) => name)).not.toContain('another');
  });

  test('a customer who was made one with another', async () => {
    await database.raw(
      `insert into contacts (id, waba_id, user_id) values (999, '${ACCOUNT.wabaId}', 'US.999');
       insert into conversations (id, waba_id, phone_number_id, contact_id, last_message_at)
       values (999, '${ACCOUNT.wabaId}', '${ACCOUNT.phoneNumberId}', 999, now())`,
    );
    await database.transaction(async (trx) => {
      const [row] = await query<{ id: string; waId: string }>(
        trx,
        'select id, wa_id as "waId" from contacts where id <> 999',
      );
      await mergeCustomers(trx, ACCOUNT.wabaId, '999', row?.id ?? '');
      await query(trx, 'update contacts set wa_id = :waId where id = 999', { waId: row?.waId ?? null });
    });
    expect(await acknowledge(message('wamid.5'))).toBe('later');
    expect(new Set((await outcome()).conversations)).toEqual(new Set(['999']));
  });

  test('a customer who is gone', async () => {
    const before = await outcome();
    await database.raw('delete from messages; delete from conversations; delete from contacts');
    expect(await acknowledge(message('wamid.5'))).toBe('later');
    const [conversation] = (await outcome()).conversations;
    expect(before.conversations).not.toContain(conversation);
    const rows = await query<{ id: string }>(database, 'select id from conversations');
    expect(rows).toEqual([{ id: conversation }]);
  });

  test('a message that came before', async () => {
    expect(await acknowledge(message('wamid.1'))).toBe('later');
    expect(await storedEvents(database)).toHaveLength(1);
    expect(await acknowledge(message('wamid.5'))).toBe('at once');
  });

  test('a message that was erased comes again as nothing', async () => {
    const name = erasedName(ACCOUNT, 'wamid.5');
    await query(
      database,
      `insert into erased_items (key) select sha256(salt || convert_to(:name, 'UTF8')) from erasure_salt`,
      { name },
    );
    expect(await acknowledge(message('wamid.5'))).toBe('later');
    expect((await storedEvents(database)).map(({ eventId }) => eventId)).toEqual(['wamid.1']);
    const repeats = await query(database, 'select waba_id as "wabaId" from erased_repeats');
    expect(repeats).toEqual([{ wabaId: ACCOUNT.wabaId }]);
    expect(await acknowledge(message('wamid.6'))).toBe('at once');
  });

  test('a placeholder gives way to its message', async () => {
    const placeholder = textMessage('wamid.5', 'x');
    placeholder.json.type = 'unsupported';
    expect(await acknowledge(bodyOf(ACCOUNT, [placeholder]))).toBe('later');
    expect(await acknowledge(message('wamid.5'))).toBe('later');
    const rows = await query(
      database,
      'select upstream_id as id, superseded_upstream_id as superseded from messages order by id desc limit 2',
    );
    expect(rows).toContainEqual({ id: null, superseded: 'wamid.5' });
    expect(rows).toContainEqual({ id: 'wamid.5', superseded: null });
  });
});
