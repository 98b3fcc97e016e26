import { expect, test } from 'vitest';
import { mergeCustomers } from '../../../src/features/messages/messages.ts';
import { lockRecipientConversation } from '../../../src/features/messages/send/recipient-conversations.ts';
import { expireContacts, expireConversations } from '../../../src/ops/erasures/retention/tenant-retention.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { OTHER_WABA, WABA } from '../api/api-harness.ts';
import { age, count, installation } from './retention-installation.ts';

test('a conversation into which a message is being sent meanwhile stays', async () => {
  const stack = await installation({ messageDays: 30 });
  const { database } = stack;
  await takeIn(database, fixtureBody('in_text'));
  await database.raw(`delete from messages; update conversations set last_message_at = ${age(30)}`);
  const [known] = await query<{ waId: string; number: string }>(
    database,
    `select k.wa_id as "waId", c.phone_number_id as number
       from conversations c join contacts k on k.id = c.contact_id`,
  );
  const { waId = '', number = '' } = known ?? {};
  const expiry = await database.transaction(async (trx) => {
    const id = await lockRecipientConversation(trx, WABA, number, { waId, userId: null });
    const begun = expireConversations(stack);
    const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await expect.poll(() => count(database, waiting)).toBe(1);
    await query(
      trx,
      `insert into messages (waba_id, phone_number_id, conversation_id, direction, type, content)
       values ('${WABA}', :number, :id, 'outbound', 'text', '{}')`,
      { number, id },
    );
    return { begun };
  });
  await expiry.begun;
  const kept = 'select 1 from messages m join conversations c on c.id = m.conversation_id';
  expect(await count(database, kept)).toBe(1);
});

test('a customer without a conversation goes once nothing was heard of them; one with a conversation stays', async () => {
  const stack = await installation({ messageDays: 30 });
  const { database } = stack;
  await takeIn(database, fixtureBody('in_text'));
  await database.raw(
    `insert into contacts (waba_id, wa_id, updated_at)
     values ('${WABA}', '911', ${age(30)}), ('${WABA}', '912', ${age(29)}), ('${OTHER_WABA}', '913', ${age(30)});
     insert into phone_aliases (waba_id, phone, wa_id) values ('${WABA}', '0911', '911'), ('${WABA}', '0912', '912');
     update contacts set updated_at = ${age(30)} where id in (select contact_id from conversations)`,
  );
  await expireContacts(stack);
  const left = await query<{ id: string }>(
    database,
    `select wa_id as id from contacts where wa_id like '91_' order by 1`,
  );
  expect(left.map(({ id }) => id)).toEqual(['912', '913']);
  expect(await count(database, 'select 1 from contacts')).toBe(3);
  expect(await count(database, 'select 1 from phone_aliases')).toBe(1);
});

test('a conversation goes with what was merged into it once its messages are gone, also in a later turn; one with messages stays', async () => {
  const stack = await installation({ messageDays: 30 });
  const { database } = stack;
  await takeIn(database, fixtureBody('in_text'));
  await takeIn(database, fixtureBody('in_bsuid_only_username'));
  const conversations = await query<{ id: string }>(database, 'select id from conversations order by id');
  const [merged = '', kept = ''] = conversations.map(({ id }) => id);
  expect(conversations).toHaveLength(2);
  await database.raw(`update conversations set last_message_at = ${age(30)}`);
  await expireConversations(stack);
  expect(await count(database, 'select 1 from conversations')).toBe(2);
  await database.transaction(async (trx) => {
    const [one, other] = await query<{ id: string }>(
      trx,
      'select contact_id as id from conversations where id in (:merged, :kept) order by id desc',
      { merged, kept },
    );
    await mergeCustomers(trx, WABA, one?.id ?? '', other?.id ?? '');
  });
  await database.raw(`delete from messages; update conversations set last_message_at = ${age(29)}`);
  await expireConversations(stack);
  expect(await count(database, 'select 1 from conversations')).toBe(2);
  await database.raw(`update conversations set last_message_at = ${age(30)}`);
  await expireConversations(stack);
  expect(await count(database, 'select 1 from conversations')).toBe(0);
  expect(await count(database, 'select 1 from contacts')).toBe(0);
});
