import { expect, test } from 'vitest';
import { holdIntake } from '../../../src/engine/inbox/intake-lock.ts';
import { shardOf } from '../../../src/engine/inbox/shards.ts';
import {
  expireConversations,
  expireMedia,
  expireMessages,
} from '../../../src/ops/erasures/retention/tenant-retention.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { WABA } from '../api/api-harness.ts';
import { age, count, installation, storedFile } from './retention-installation.ts';

test('messages that their tenant keeps no longer go with all that hangs on them, and nothing brings them back', async () => {
  const stack = await installation({ messageDays: 30 });
  const { database, get } = stack;
  const old = await storedFile(stack);
  // Of another customer.
  await takeIn(database, fixtureBody('in_bsuid_only_username'));
  await database.raw("update deliveries set state = 'delivered'; delete from delivery_queue");
  await query(database, `update messages set created_at = ${age(30)} where id = :messageId`, {
    messageId: old.messageId,
  });
  await query(database, `update conversations set last_message_at = ${age(30)} where id = :conversation`, {
    conversation: old.conversation,
  });
  await expireMessages(stack);
  await expireConversations(stack);
  const gone = async () => ({
    messages: await count(database, `select 1 from messages where id = ${old.messageId}`),
    conversations: await count(database, `select 1 from conversations where id = ${old.conversation}`),
    events: await count(database, `select 1 from events where event_id like '${old.upstreamId}%'`),
  });
  expect(await gone()).toEqual({ messages: 0, conversations: 0, events: 0 });
  await expect(stack.objectStore.getRange(old.objectKey)).rejects.toThrow();
  expect((await get(`/api/external/messages/${old.messageId}`)).statusCode).toBe(404);
  expect((await get(`/received_media/${old.objectKey}`)).statusCode).toBe(410);
  // The younger one stays, with its customer.
  expect(await count(database, 'select 1 from messages')).toBe(1);
  expect(await count(database, 'select 1 from contacts')).toBe(1);
  await query(database, 'delete from dedup_keys');
  await takeIn(database, old.body);
  expect(await gone()).toEqual({ messages: 0, conversations: 0, events: 0 });
});

test('a message whose download or delivery is under way stays until that has ended', async () => {
  const stack = await installation({ messageDays: 30 });
  const { database } = stack;
  await addEndpoint(database, WABA, 'https://shop.example/hook');
  await takeIn(database, fixtureBody('in_text'));
  await takeIn(database, fixtureBody('in_image_no_url'));
  await database.raw(
    `update messages set created_at = ${age(30)}; update conversations set last_message_at = ${age(30)}`,
  );
  await expireMessages(stack);
  expect(await count(database, 'select 1 from messages')).toBe(2);
  await database.raw(`delete from delivery_queue; update deliveries set state = 'delivered'`);
  await expireMessages(stack);
  const left = await query<{ type: string }>(database, 'select type from messages');
  expect(left).toEqual([{ type: 'image' }]);
});

test('a status that intake stores while its message is taken away goes with it', async () => {
  const stack = await installation({ messageDays: 30 });
  const { database } = stack;
  await takeIn(database, fixtureBody('in_text'));
  await query(database, `update messages set created_at = ${age(30)}`);
  const expiry = await database.transaction(async (trx) => {
    // As intake does: it has seen that the message is not erased, and has its lock until the status is stored.
    await holdIntake(trx, shardOf(WABA));
    const begun = expireMessages(stack);
    const waiting = `select 1 from pg_locks where locktype = 'advisory' and not granted
                        and database = (select oid from pg_database where datname = current_database())`;
    await expect.poll(() => count(database, waiting)).toBe(1);
    await query(
      trx,
      `insert into message_statuses (phone_number_id, upstream_id, status, participant, content)
       select phone_number_id, upstream_id, 'read', '', '{}' from messages`,
    );
    return { begun };
  });
  await expiry.begun;
  expect(await count(database, 'select 1 from messages')).toBe(0);
  expect(await count(database, 'select 1 from message_statuses')).toBe(0);
});

test('intake goes on while messages are taken away, however long that takes', async () => {
  const stack = await installation({ messageDays: 30 });
  const { database } = stack;
  await takeIn(database, fixtureBody('in_text'));
  await query(database, `update messages set created_at = ${age(30)}`);
  const expiry = await database.transaction(async (trx) => {
    await query(trx, 'select 1 from messages for update');
    const begun = expireMessages(stack);
    await expect.poll(() => count(database, 'select 1 from erased_items')).not.toBe(0);
    await database.transaction((other) => holdIntake(other, shardOf(WABA)));
    return { begun };
  });
  await expiry.begun;
  expect(await count(database, 'select 1 from messages')).toBe(0);
});

test('a message goes also when its file has gone before', async () => {
  const stack = await installation({ mediaDays: 7, messageDays: 30 });
  const { database, get } = stack;
  const old = await storedFile(stack);
  await database.raw("update deliveries set state = 'delivered'; delete from delivery_queue");
  await query(database, `update media set finished_at = ${age(7)}`);
  await expireMedia(stack);
  await query(database, `update messages set created_at = ${age(30)}`);
  await expireMessages(stack);
  expect(await count(database, 'select 1 from messages')).toBe(0);
  expect((await get(`/received_media/${old.objectKey}`)).statusCode).toBe(410);
});
