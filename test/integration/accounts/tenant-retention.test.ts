import { expect, test } from 'vitest';
import { setTenantPolicy } from '../../../src/features/accounts/tenant-policies.ts';
import { readTenantUsage } from '../../../src/features/accounts/tenant-usage.ts';
import {
  expireContacts,
  expireConversations,
  expireEvents,
  expireMedia,
  expireMessages,
  tenantRetentionSteps,
} from '../../../src/ops/erasures/retention/tenant-retention.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { buffersTouched } from '../../support/buffers-touched.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';
import { OTHER_WABA, WABA } from '../api/api-harness.ts';
import { publishOne } from '../deliveries/event-fixtures.ts';
import { age, count, installation, storedFile } from './retention-installation.ts';

test('a file that its tenant keeps no longer goes, its row says so, and its URL answers 410', async () => {
  const stack = await installation({ mediaDays: 7 });
  const { database, tenantId, get } = stack;
  const old = await storedFile(stack);
  const young = await storedFile(stack);
  await query(database, `update media set finished_at = ${age(7)} where message_id = :messageId`, {
    messageId: old.messageId,
  });
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
    'select tenant_id as id from wabas where waba_id = :otherWaba',
    { otherWaba: OTHER_WABA },
  );
  await query(
    database,
    `insert into tenant_policies (tenant_id, media_days, event_days, message_days, audit_days)
     select :id, media_days, event_days, message_days, audit_days from tenant_policies`,
    { id: other?.id ?? '' },
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

test('a tenant keeps events no longer than the installation does, and other things as long as it wants', async () => {
  const { tools, tenantId } = await installation({}, { HELIOGRAPH_RETENTION_EVENTS_DAYS: '20' });
  await expect(setTenantPolicy(tools, tenantId, { eventDays: 21 })).rejects.toThrow('1 to 20 days');
  expect(
    await setTenantPolicy(tools, tenantId, { eventDays: 20, messageDays: 400, mediaDays: 90 }),
  ).toMatchObject({
    eventDays: 20,
    messageDays: 400,
    mediaDays: 90,
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
            '${WABA}', :tenantId, '800000000000111', 'message', 'wamid.' || g, 'l', 1, '{}' from generate_series(1, 8000) g`,
    { tenantId },
  );
  for (const table of ['messages', 'media', 'events']) await database.raw(`vacuum analyze ${table}`);
  await query(
    database,
    'insert into tenant_policies (tenant_id, message_days, media_days, event_days) values (:tenantId, 30, 30, 30)',
    { tenantId },
  );
  const objectStore = { remove: async () => 0 };
  for (const expire of [expireMedia, expireMessages, expireConversations, expireContacts, expireEvents]) {
    const touched = await buffersTouched(database, (explaining) => {
      const walked = { ...explaining, transaction: (run: (trx: Database) => unknown) => run(explaining) };
      return expire({ database: walked as Database, objectStore });
    });
    expect(touched, expire.name).toBeLessThan(150);
  }
});
