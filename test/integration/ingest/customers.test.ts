import { describe, expect, test } from 'vitest';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { storedEvents, takeIn } from '../../support/take-in.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';

let nextMessage = 0;

type Sender = { from?: string; userId?: string; number?: string };

/** A text message from a customer known by phone, by user id, or both. */
function textFrom({ from, userId, number = '800000000000111' }: Sender): Buffer {
  nextMessage += 1;
  const message = {
    ...(from === undefined ? {} : { from }),
    ...(userId === undefined ? {} : { from_user_id: userId }),
    id: `wamid.customer-test-${nextMessage}`,
    timestamp: '1790000000',
    type: 'text',
    text: { body: 'hi' },
  };
  const contact = {
    profile: { name: 'Asha' },
    ...(from === undefined ? {} : { wa_id: from }),
    ...(userId === undefined ? {} : { user_id: userId }),
  };
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '12025550100', phone_number_id: number },
    contacts: [contact],
    messages: [message],
  };
  const changes = [{ field: 'messages', value }];
  const entry = [{ id: '900000000000101', changes }];
  return Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }));
}

async function conversations(database: Database) {
  return await query<{ wa_id: string | null; user_id: string | null; messages: string }>(
    database,
    `select k.wa_id, k.user_id, (select count(*) from messages m where m.conversation_id = c.id) as messages
       from conversations c join contacts k on k.id = c.contact_id
      where c.merged_into is null order by c.id`,
  );
}

describe('one conversation per number and customer', () => {
  test('messages of one customer to one number share it; another number has its own', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, textFrom({ from: '1' }), textFrom({ from: '1' }));
    await takeIn(database, textFrom({ from: '1', number: '800000000000112' }));
    expect((await conversations(database)).map((row) => row.messages)).toEqual(['2', '1']);
  });

  test('a customer first known by phone, then by user id, is one as soon as a payload carries both', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, textFrom({ from: '15550001' }));
    await takeIn(database, textFrom({ userId: 'US.1' }));
    expect(await conversations(database)).toHaveLength(2);
    await takeIn(database, textFrom({ from: '15550001', userId: 'US.1' }));
    expect(await conversations(database)).toEqual([{ wa_id: '15550001', user_id: 'US.1', messages: '3' }]);
    const old = await query<{ merged_into: string }>(
      database,
      'select merged_into from conversations where merged_into is not null',
    );
    expect(old).toEqual([{ merged_into: '1' }]);
  });

  test('the same within one batch', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(
      database,
      textFrom({ from: '15550001' }),
      textFrom({ userId: 'US.1' }),
      textFrom({ from: '15550001', userId: 'US.1' }),
    );
    expect(await conversations(database)).toEqual([{ wa_id: '15550001', user_id: 'US.1', messages: '3' }]);
  });

  test.each([
    ['of a known phone', '"wa_id": "12025550143"', { from: '12025550143' }],
    ['without a phone', '"parent_user_id": "US.ENT.1"', {}],
  ])('another user id %s keeps the history, and makes no customer of nobody', async (_name, ids, phone) => {
    const { database } = await seededWorkerDatabase();
    const update = fixtureBody('fld_user_id_update').toString().replaceAll('"wa_id": "12025550143"', ids);
    await takeIn(database, Buffer.from(update.replaceAll('US.1', 'US.2')));
    expect(await query(database, 'select 1 from contacts')).toEqual([]);
    await takeIn(database, textFrom({ userId: 'US.10000000000000000143', ...phone }));
    await takeIn(database, Buffer.from(update));
    await takeIn(database, textFrom({ userId: 'US.10000000000000000199' }));
    expect(await conversations(database)).toMatchObject([
      { user_id: 'US.10000000000000000199', messages: '2' },
    ]);
  });

  test.each([
    ['no list', { user_id: { previous: 'US.1', current: 'US.9' } }],
    ['texts', ['US.1', 'US.9']],
    ['ids side by side', [{ previous_user_id: 'US.1', user_id: 'US.9' }]],
    ['no former id', [{ user_id: { current: 'US.9' } }]],
    ['no present id', [{ user_id: { previous: 'US.1' } }]],
  ])(
    'other user ids in a form that upstream may have, %s, are an event and change nobody',
    async (_name, list) => {
      const { database } = await seededWorkerDatabase();
      await takeIn(database, textFrom({ userId: 'US.1' }));
      const body = JSON.parse(fixtureBody('fld_user_id_update').toString());
      body.entry[0].changes[0].value.user_id_update = list;
      await takeIn(database, Buffer.from(JSON.stringify(body)));
      expect(await conversations(database)).toMatchObject([{ user_id: 'US.1', messages: '1' }]);
      expect((await storedEvents(database)).map(({ type }) => type)).toEqual([
        'message',
        'upstream.user_id_update',
      ]);
      expect(await query(database, `select 1 from inbox where state <> 'done'`)).toEqual([]);
    },
  );

  test('a changed number keeps the history, and the old number may become somebody else', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, fixtureBody('in_bsuid_with_phone'));
    await takeIn(database, fixtureBody('in_system_user_changed_number_bsuid'));
    await takeIn(database, textFrom({ from: '12025550199', userId: 'US.10000000000000000199' }));
    expect(await conversations(database)).toEqual([
      { wa_id: '12025550199', user_id: 'US.10000000000000000199', messages: '3' },
    ]);
    await takeIn(database, textFrom({ from: '12025550143', userId: 'US.77' }));
    expect(await conversations(database)).toHaveLength(2);
  });

  test('a phone that comes with another user id is another customer', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, textFrom({ from: '15550001', userId: 'US.1' }));
    await takeIn(database, textFrom({ from: '15550001', userId: 'US.2' }));
    expect(await conversations(database)).toEqual([
      { wa_id: null, user_id: 'US.1', messages: '1' },
      { wa_id: '15550001', user_id: 'US.2', messages: '1' },
    ]);
  });

  test('a message without any sender is kept', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, textFrom({}), textFrom({}));
    expect((await conversations(database)).map((row) => row.messages)).toEqual(['2']);
  });
});
