import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { SignedBody } from '../../../src/engine/inbox/bodies.ts';
import { listConversations } from '../../../src/features/messages/conversations/conversations.ts';
import { followPhoneAlias } from '../../../src/features/messages/send/recipient-conversations.ts';
import { ingestHistory } from '../../../src/ingest/fields/history.ts';
import { makeDirectIntake } from '../../../src/ingest/intake/direct-intake.ts';
import { eraseCustomer } from '../../../src/ops/erasures/erasures.ts';
import { exportCustomer } from '../../../src/ops/erasures/export-customer.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { drainInbox, ENDLESS_PATIENCE, intakeTools, storedEvents, takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { bodyOf, startErasureWorld, unzipped, WABA } from '../erasures/erasure-world.ts';

/** How upstream writes one Brazilian phone: as `from`, and as `wa_id`. */
const FROM = '5547990000001';
const WA_ID = '554790000001';
const OTHER = '554790000002';

let next = 0;

const contact = (waId: string, userId?: string) => ({
  profile: { name: 'Same Person' },
  wa_id: waId,
  ...(userId !== undefined && { user_id: userId }),
});

function message(from: string, contacts: object[] = [], more: object = {}): Buffer {
  next += 1;
  const text = { timestamp: '1795713914', type: 'text', text: { body: 'oi' } };
  return bodyOf([{ contacts, messages: [{ from, id: `wamid.spelling-${next}`, ...text, ...more }] }]);
}

const pair = () => message(FROM, [contact(WA_ID)]);

const status = (recipient: string, contacts?: object[]) => {
  next += 1;
  const one = { id: `wamid.sent-${next}`, status: 'sent', timestamp: '1795713915', recipient_id: recipient };
  return bodyOf([{ ...(contacts !== undefined && { contacts }), statuses: [one] }]);
};

const echo = (to: string) => {
  next += 1;
  const one = { from: '12025550100', to, id: `wamid.echo-${next}`, timestamp: '1795713916', type: 'text' };
  return bodyOf([{ field: 'smb_message_echoes', message_echoes: [{ ...one, text: { body: 'x' } }] }]);
};

const history = (id: string) => {
  next += 1;
  const one = {
    from: id,
    id: `wamid.old-${next}`,
    timestamp: '1795713000',
    type: 'text',
    text: { body: 'old' },
  };
  const part = { metadata: { phase: 0, chunk_order: 1 }, threads: [{ id, messages: [one] }] };
  return bodyOf([{ field: 'history', history: [part] }]);
};

async function seeded(): Promise<Database> {
  const { database } = await seededWorkerDatabase();
  await addEndpoint(database, WABA, 'https://one.example/hook');
  return database;
}

async function conversations(database: Database) {
  return await query<{ id: string; waId: string | null; userId: string | null; messages: number }>(
    database,
    `select c.id, k.wa_id as "waId", k.user_id as "userId",
            (select cast(count(*) as integer) from messages m where m.conversation_id = c.id) as messages
       from conversations c join contacts k on k.id = c.contact_id where c.merged_into is null order by c.id`,
  );
}

async function found(database: Database, phone: string): Promise<string[]> {
  const filter = { phoneNumberId: null, customer: { phone }, since: null };
  const rows = await listConversations(database, WABA, filter, { order: 'desc', after: null, limit: 10 });
  return rows.map(({ id }) => id);
}

describe('a customer whose `from` and `wa_id` differ', () => {
  test('is one, found by both, whichever a later item names', async () => {
    const database = await seeded();
    await takeIn(database, pair());
    const [one] = await conversations(database);
    expect(one).toMatchObject({ waId: WA_ID, messages: 1 });
    await takeIn(database, message(WA_ID), message(FROM), message(WA_ID, [contact(WA_ID)]), pair());
    await takeIn(database, echo(WA_ID), echo(FROM), echo(`+${FROM}`), history(FROM), history(WA_ID));
    await ingestHistory(database, new AbortController().signal, 0);
    await takeIn(database, status(FROM), status(WA_ID), status(FROM, [contact(WA_ID)]));
    expect(await conversations(database)).toEqual([{ ...one, messages: 10 }]);
    for (const phone of [FROM, WA_ID]) expect(await found(database, phone)).toEqual([one?.id]);
    expect(await found(database, OTHER)).toEqual([]);
    const events = await query<{ id: string | null }>(
      database,
      `select conversation_id as id from events where event_type = 'status'`,
    );
    expect(events.map(({ id }) => id)).toEqual([one?.id, one?.id, one?.id]);
    const [event] = await storedEvents(database);
    expect(JSON.parse(event?.body ?? '').data).toMatchObject({
      contacts: [{ wa_id: WA_ID }],
      message: { from: FROM },
    });
  });

  test.each([
    ['in batches of their own', false],
    ['in one batch', true],
  ])('becomes one where there were two, %s', async (_, together) => {
    const database = await seeded();
    const bodies = [message(WA_ID), message(FROM), message(OTHER), status(WA_ID), pair(), message(FROM)];
    if (together) await takeIn(database, ...bodies);
    else for (const body of bodies) await takeIn(database, body);
    const all = await conversations(database);
    expect(all.map(({ waId, messages }) => [waId, messages])).toEqual([
      [WA_ID, 4],
      [OTHER, 1],
    ]);
    expect(await found(database, FROM)).toEqual([all[0]?.id]);
  });

  test('is one by the contacts of a status, too', async () => {
    const database = await seeded();
    await takeIn(database, message(FROM));
    await takeIn(database, status(FROM, [contact(WA_ID)]));
    await takeIn(database, message(WA_ID));
    expect(await conversations(database)).toMatchObject([{ waId: WA_ID, messages: 2 }]);
  });

  test('is one where a report of a group has both', async () => {
    const database = await seeded();
    await takeIn(database, message(FROM));
    const removed = { input: `+${FROM}`, wa_id: WA_ID };
    const added = { type: 'group_participants_add', group_id: 'G1', added_participants: [removed] };
    await takeIn(
      database,
      bodyOf([{ field: 'group_participants_update', groups: [{ ...added, timestamp: '1795713914' }] }]),
    );
    await takeIn(database, message(WA_ID));
    expect(await conversations(database)).toMatchObject([{ waId: WA_ID, messages: 2 }]);
  });

  test('stays two with another user id, and a change of number is no spelling', async () => {
    const database = await seeded();
    await takeIn(database, message(FROM, [contact(FROM, 'BR.1')], { from_user_id: 'BR.1' }));
    await takeIn(database, message(WA_ID, [contact(WA_ID, 'BR.2')], { from_user_id: 'BR.2' }));
    await takeIn(database, message(FROM, [contact(WA_ID, 'BR.2')], { from_user_id: 'BR.2' }));
    expect(await conversations(database)).toMatchObject([
      { userId: 'BR.1', waId: null, messages: 1 },
      { userId: 'BR.2', waId: WA_ID, messages: 2 },
    ]);
    const system = {
      type: 'system',
      system: { type: 'user_changed_number', wa_id: '4915550000001', body: 'x' },
    };
    await takeIn(database, message('4915550000000', [contact('4915550000001')], system));
    expect(await query(database, `select 1 from phone_aliases where phone like '49%'`)).toEqual([]);
  });

  test('stays one when an answer to a send says the opposite', async () => {
    const database = await seeded();
    await takeIn(database, pair());
    await database.transaction((trx) => followPhoneAlias(trx, WABA, WA_ID, FROM));
    await takeIn(database, message(WA_ID), message(FROM), pair(), echo(WA_ID), echo(FROM));
    expect(await conversations(database)).toHaveLength(1);
    for (const phone of [FROM, WA_ID]) expect(await found(database, phone)).toHaveLength(1);
  });

  test('is one where a body is stored as it comes', async () => {
    const database = await seeded();
    const claims = { take: () => true, carry: () => undefined, cancel: () => undefined };
    const directClaims = () => ({ ...claims, token: randomUUID(), leaseMs: 60_000 });
    const direct = makeDirectIntake(
      { ...intakeTools(database), directClaims },
      { isIdle: () => true },
      ENDLESS_PATIENCE,
    );
    const bodies = [
      pair(),
      pair(),
      message(FROM),
      message(WA_ID),
      status(FROM),
      status(WA_ID),
      pair(),
      message(FROM),
    ];
    const kept: boolean[] = [];
    for (const body of bodies) {
      const given: SignedBody[] = [{ body, signedFor: null }];
      const { usual, isKept } = direct(given, () => undefined);
      const isDirect = usual.length === 0 && (await isKept);
      if (!isDirect) await takeIn(database, body);
      kept.push(isDirect);
    }
    await drainInbox(database);
    expect(await conversations(database)).toMatchObject([{ waId: WA_ID, messages: 6 }]);
    expect(kept.slice(2)).toEqual(bodies.slice(2).map(() => true));
  });
});

test.each([FROM, WA_ID])('%s exports and erases that customer whole, and no other', async (phone) => {
  const { tools, database, objectStore, erase } = await startErasureWorld();
  await takeIn(database, pair(), message(OTHER), echo(WA_ID), status(FROM));
  const { archive } = await exportCustomer({ ...tools, objectStore }, WABA, { phone });
  const files = unzipped(Buffer.concat(await archive.toArray()));
  expect(String(files.get('messages.ndjson')).trim().split('\n')).toHaveLength(2);
  const { erasureId } = await eraseCustomer(tools, WABA, { phone });
  await erase(erasureId);
  expect(await conversations(database)).toMatchObject([{ waId: OTHER, messages: 1 }]);
  expect(await query(database, 'select 1 from phone_aliases')).toEqual([]);
  const bodies = await query<{ body: Buffer }>(database, 'select body from inbox');
  for (const { body } of bodies) for (const name of [FROM, WA_ID]) expect(body.includes(name)).toBe(false);
});
