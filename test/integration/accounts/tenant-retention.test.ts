import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { policyDefaults, setTenantPolicy } from '../../../src/accounts/tenant-policies.ts';
import { readTenantUsage } from '../../../src/accounts/tenant-usage.ts';
import { buildApp } from '../../../src/api/app.ts';
import {
  expireContacts,
  expireConversations,
  expireEvents,
  expireMedia,
  expireMessages,
  tenantRetentionSteps,
} from '../../../src/erasures/tenant-retention.ts';
import { mergeContacts } from '../../../src/inbound/customers.ts';
import { shardOf } from '../../../src/inbound/inbox.ts';
import { markMediaStored, takePendingMedia } from '../../../src/messages/media.ts';
import { lockRecipientConversation } from '../../../src/messages/send/recipient-conversations.ts';
import { SYSTEM } from '../../../src/platform/audit/audit.ts';
import { loadConfig } from '../../../src/platform/config/config.ts';
import { openObjectStore } from '../../../src/platform/object-store/object-store.ts';
import { type Database, holdIntake } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { buffersTouched } from '../../support/buffers-touched.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testDatabase, testWorkerDatabase } from '../../support/test-database.ts';
import { testSettings } from '../../support/test-settings.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { addKey, OTHER_WABA, WABA } from '../api/api-harness.ts';
import { publishOne } from '../deliveries/event-fixtures.ts';
import { messageBody } from '../messages/media/media-stack.ts';

async function installation(
  policy: Parameters<typeof setTenantPolicy>[2],
  overrides: Record<string, string> = {},
) {
  const { database, url } = await testDatabase();
  const tenantId = (await seedFixtureAccounts(database)).get(WABA) ?? '';
  const bucket = { HELIOGRAPH_OBJECT_STORE_BUCKET: `test-${randomBytes(6).toString('hex')}` };
  const config = loadConfig(testSettings(url, { ...bucket, ...overrides }));
  const tools = { database, actor: SYSTEM, defaults: policyDefaults(config) };
  await setTenantPolicy(tools, tenantId, policy);
  const objectStore = openObjectStore(config.objectStore);
  const app = buildApp({ config, database, objectStore, logger: silentLogger });
  const { authorization } = await addKey(database);
  onTestFinished(async () => {
    await app.close();
    objectStore.close();
  });
  const get = async (path: string) => await app.inject({ url: path, headers: { authorization } });
  return { database, tenantId, config, objectStore, get, tools };
}

/** A message of a WABA with a stored file. */
async function storedFile({ database, objectStore }: Awaited<ReturnType<typeof installation>>) {
  const { body, upstreamId } = messageBody({
    type: 'document',
    document: { id: '1', mime_type: 'text/plain' },
  });
  await takeIn(database, body);
  const [row] = await query<{ id: string; conversation: string }>(
    database,
    'select id, conversation_id as conversation from messages where upstream_id = ?',
    [upstreamId],
  );
  const { id: messageId = '', conversation = '' } = row ?? {};
  const objectKey = randomBytes(24).toString('base64url');
  await takePendingMedia(database, { wabaId: WABA, messageId, objectKey });
  await objectStore.put(objectKey, Readable.from([Buffer.from('hello')]), { contentType: 'text/plain' });
  const stored = {
    objectKey,
    servedType: 'text/plain',
    mimeType: 'text/plain',
    sizeBytes: 5,
    sha256: 'a'.repeat(64),
  };
  await database.transaction((trx) => markMediaStored(trx, WABA, messageId, stored));
  return { messageId, objectKey, upstreamId, conversation, body };
}

const count = async (database: Database, text: string) => (await query(database, text)).length;
const age = (days: number) => `now() - interval '${days} days' - interval '1 minute'`;

test('a file that its tenant keeps no longer goes, its row says so, and its URL answers 410', async () => {
  const stack = await installation({ mediaDays: 7 });
  const { database, tenantId, get } = stack;
  const old = await storedFile(stack);
  const young = await storedFile(stack);
  await query(database, `update media set finished_at = ${age(7)} where message_id = ?`, [old.messageId]);
  await expireMedia(stack);
  await expireMedia(stack);
  await expect(stack.objectStore.getRange(old.objectKey)).rejects.toThrow();
  expect((await get(`/received_media/${old.objectKey}`)).statusCode).toBe(410);
  expect((await get(`/api/external/messages/${old.messageId}/media`)).statusCode).toBe(410);
  const message = (await get(`/api/external/messages/${old.messageId}`)).json();
  expect(message).toMatchObject({
    mediaPending: false,
    mediaUrl: null,
    mediaError: { code: 'file_expired' },
  });
  expect((await get(`/received_media/${young.objectKey}`)).body).toBe('hello');
  expect(await readTenantUsage(database, tenantId)).toMatchObject({ storedFiles: 1, storedBytes: 5 });
});

test('events that their tenant keeps no longer go with deliveries and attempts; open ones and those of others stay', async () => {
  const { database } = await installation({ eventDays: 10 });
  const at = new Date(Date.now() - 11 * 86_400_000);
  await addEndpoint(database, WABA, 'https://shop.example/hook');
  await addEndpoint(database, OTHER_WABA, 'https://other.example/hook');
  const own = { wabaId: WABA, phoneNumberId: '800000000000111' };
  const other = { wabaId: OTHER_WABA, phoneNumberId: '800000000000221' };
  await publishOne(database, 'gone', { ...own, at });
  await publishOne(database, 'open', { ...own, at });
  await publishOne(database, 'young', { ...own, at: new Date() });
  await publishOne(database, 'other', { ...other, at });
  const idsOf = `select d.id from deliveries d join events e on e.id = d.event_uuid where e.event_id <> 'open'`;
  await query(database, `update deliveries set state = 'delivered' where id in (${idsOf})`);
  await query(database, `delete from delivery_queue where delivery_id in (${idsOf})`);
  await expireEvents({ database });
  const left = await query<{ id: string }>(database, 'select event_id as id from events order by event_id');
  expect(left.map(({ id }) => id)).toEqual(['open', 'other', 'young']);
  expect(await count(database, 'select 1 from deliveries')).toBe(3);
});

test('a turn that is cut off goes on behind the WABA that it came to, and the first WABA has its turn again', async () => {
  const { database, objectStore } = await installation({
    mediaDays: 7,
    eventDays: 7,
    messageDays: 7,
    auditDays: 90,
  });
  const [first] = await query<{ id: string }>(database, 'select tenant_id as id from tenant_policies');
  const [other] = await query<{ id: string }>(
    database,
    'select tenant_id as id from wabas where waba_id = ?',
    [OTHER_WABA],
  );
  await query(
    database,
    `insert into tenant_policies (tenant_id, media_days, event_days, message_days, audit_days)
     select ?, media_days, event_days, message_days, audit_days from tenant_policies`,
    [other?.id ?? ''],
  );
  const wanted = [WABA, OTHER_WABA, first?.id ?? '', other?.id ?? ''];
  let visited: string[] = [];
  let ending = new AbortController();
  /** Each batch is the last one of its turn. */
  const cutting = (under: Database): Database => ({
    ...under,
    raw: async (text, bindings) => {
      const about = (Array.isArray(bindings) ? bindings : Object.values(bindings ?? {})).map(String);
      const subject =
        text.includes(' p join wabas ') || text.includes('from tenant_policies')
          ? undefined
          : wanted.find((id) => about.includes(id));
      if (subject !== undefined && !visited.includes(subject)) visited.push(subject);
      if (subject !== undefined) ending.abort();
      return await under.raw(text, bindings);
    },
    transaction: (run) => under.transaction((trx) => run({ ...cutting(trx), isTransaction: true })),
  });
  for (const step of tenantRetentionSteps({ database: cutting(database), objectStore })) {
    const turn = async () => {
      visited = [];
      ending = new AbortController();
      await step.run(ending.signal);
      return visited;
    };
    const turns = [await turn(), await turn(), await turn()];
    expect(
      turns.map(({ length }) => length),
      step.name,
    ).toEqual([1, 1, 1]);
    const [a, b, c] = turns.flat();
    expect([new Set([a, b]).size, c], step.name).toEqual([2, a]);
  }
});

test('messages that their tenant keeps no longer go with all that hangs on them, and nothing brings them back', async () => {
  const stack = await installation({ messageDays: 30 });
  const { database, get } = stack;
  const old = await storedFile(stack);
  // Of another customer.
  await takeIn(database, fixtureBody('in_bsuid_only_username'));
  await database.raw("update deliveries set state = 'delivered'; delete from delivery_queue");
  await query(database, `update messages set created_at = ${age(30)} where id = ?`, [old.messageId]);
  await query(database, `update conversations set last_message_at = ${age(30)} where id = ?`, [
    old.conversation,
  ]);
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
    await expect.poll(() => count(database, waiting), { timeout: 20_000 }).toBe(1);
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
    await expect.poll(() => count(database, 'select 1 from erased_items'), { timeout: 20_000 }).not.toBe(0);
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
    await expect.poll(() => count(database, waiting), { timeout: 20_000 }).toBe(1);
    await query(
      trx,
      `insert into messages (waba_id, phone_number_id, conversation_id, direction, type, content)
       values ('${WABA}', ?, ?, 'outbound', 'text', '{}')`,
      [number, id],
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
      'select contact_id as id from conversations where id in (?, ?) order by id desc',
      [merged, kept],
    );
    await mergeContacts(trx, WABA, one?.id ?? '', other?.id ?? '');
  });
  await database.raw(`delete from messages; update conversations set last_message_at = ${age(29)}`);
  await expireConversations(stack);
  expect(await count(database, 'select 1 from conversations')).toBe(2);
  await database.raw(`update conversations set last_message_at = ${age(30)}`);
  await expireConversations(stack);
  expect(await count(database, 'select 1 from conversations')).toBe(0);
  expect(await count(database, 'select 1 from contacts')).toBe(0);
});

test('a tenant keeps events no longer than the installation does, and other things as long as it wants', async () => {
  const { tools, tenantId } = await installation({}, { HELIOGRAPH_RETENTION_EVENTS_DAYS: '20' });
  await expect(setTenantPolicy(tools, tenantId, { eventDays: 21 })).rejects.toThrow('1 to 20 days');
  expect(
    await setTenantPolicy(tools, tenantId, { eventDays: 20, messageDays: 400, mediaDays: 90 }),
  ).toMatchObject({
    ...{ eventDays: 20, messageDays: 400, mediaDays: 90 },
  });
});

test('a turn without anything to do touches few pages, whatever is kept, and a batch is found without a walk', async () => {
  const { database } = await testWorkerDatabase();
  const tenantId = (await seedFixtureAccounts(database)).get(WABA) ?? '';
  await query(
    database,
    `with c as (insert into conversations (waba_id, phone_number_id, group_id, last_message_at)
                values ('${WABA}', '800000000000111', 'group', now()) returning id),
          m as (insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content, created_at)
                select '${WABA}', '800000000000111', c.id, 'inbound', 'wamid.' || g, 'text', '{}', now() - g * interval '1 minute'
                  from c, generate_series(1, 8000) g returning id, created_at)
     insert into media (message_id, waba_id, state, media_type, object_key, size_bytes, finished_at)
     select id, '${WABA}', 'stored', 'image', 'k' || id, 1, created_at from m`,
  );
  await query(
    database,
    `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, body)
     select (now() at time zone 'utc')::date,
            cast(lpad(to_hex(cast(extract(epoch from now()) * 1000 as bigint) - g), 12, '0') || '70008' || lpad(to_hex(g), 15, '0') as uuid),
            '${WABA}', ?, '800000000000111', 'message', 'wamid.' || g, 'l', 1, '{}' from generate_series(1, 8000) g`,
    [tenantId],
  );
  for (const table of ['messages', 'media', 'events']) await database.raw(`vacuum analyze ${table}`);
  await query(
    database,
    'insert into tenant_policies (tenant_id, message_days, media_days, event_days) values (?, 30, 30, 30)',
    [tenantId],
  );
  const objectStore = { remove: async () => undefined };
  for (const expire of [expireMedia, expireMessages, expireConversations, expireContacts, expireEvents]) {
    const touched = await buffersTouched(database, (explaining) => {
      const walked = { ...explaining, transaction: (run: (trx: Database) => unknown) => run(explaining) };
      return expire({ database: walked as Database, objectStore });
    });
    expect(touched, expire.name).toBeLessThan(150);
  }
});
