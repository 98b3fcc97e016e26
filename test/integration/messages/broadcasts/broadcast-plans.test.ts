import { expect, test } from 'vitest';
import {
  lastOutcomes,
  listRecipients,
  nextPending,
} from '../../../../src/features/messages/broadcasts/broadcast-recipients.ts';
import {
  addToRecipients,
  insertBroadcast,
} from '../../../../src/features/messages/broadcasts/broadcast-store.ts';
import { broadcastOf } from '../../../../src/features/messages/broadcasts/broadcasts.ts';
import { pauseItself } from '../../../../src/features/messages/broadcasts/switch-broadcast.ts';
import { countOpenOf } from '../../../../src/features/messages/send/broadcast-messages.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { execute } from '../../../../src/platform/postgres/sql.ts';
import { buffersTouched } from '../../../support/buffers-touched.ts';
import { type FreshTenant, freshTenant } from '../../../support/test-accounts.ts';
import { databaseOfFile } from '../../../support/test-database.ts';

const store = databaseOfFile();

/** A million with HELIOGRAPH_TEST_RECIPIENTS=1000000, in broadcasts of 100,000, to see the plans of a full table. */
const RECIPIENTS = Number(process.env.HELIOGRAPH_TEST_RECIPIENTS ?? 20_000);
const LARGEST = 100_000;

/** Messages of a part of the recipients, which upstream has reported as read. */
const SENT = `with c as (insert into contacts (waba_id, wa_id) values (:wabaId, cast(:id as text) || '.' || cast(:from as text)) returning id),
          v as (insert into conversations (waba_id, phone_number_id, contact_id) select :wabaId, :number, id from c returning id),
          m as (insert into messages (waba_id, phone_number_id, conversation_id, direction, upstream_id, type, content)
                select :wabaId, :number, v.id, 'outbound', 'wamid.' || cast(:id as text) || '.' || n, 'template', '{}'
                  from v, generate_series(cast(:from as integer), cast(:to as integer)) as n returning id, upstream_id),
          o as (insert into outbound_messages (message_id, waba_id, phone_number_id, recipient, state, upstream_id)
                select id, :wabaId, :number, '1', 'accepted', upstream_id from m),
          r as (insert into broadcast_recipients (broadcast_id, waba_id, recipient, state, message_id)
                select cast(cast(:id as text) as bigint), :wabaId, id, 'queued', id from m)
     insert into message_states (phone_number_id, upstream_id, status) select :number, upstream_id, 'read' from m`;

/** A running broadcast: of `sent` recipients upstream has reported, `pending` have no message yet. */
async function broadcastWith(tenant: FreshTenant, { sent, pending }: { sent: number; pending: number }) {
  const { database } = store;
  const { wabaId, number } = tenant;
  const id = await database.transaction(async (trx) => {
    const template = JSON.stringify({ name: 'winter_sale', language: { code: 'en_US' } });
    const row = { wabaId, phoneNumberId: number, name: 'Sale', template, sendAt: null, requestedBy: 'test' };
    const broadcastId = await insertBroadcast(trx, row);
    await addToRecipients(trx, broadcastId, sent + pending);
    return broadcastId;
  });
  // No statement outlasts its limit on a slow machine.
  for (let from = 1; from <= sent; from += 5_000) {
    const part = { id, wabaId, number, from, to: Math.min(sent, from + 4_999) };
    await execute(database, SENT, part);
  }
  await execute(
    database,
    `insert into broadcast_recipients (broadcast_id, waba_id, recipient)
     select :id, :wabaId, 'p' || n from generate_series(1, :pending) as n`,
    { id, wabaId, pending },
  );
  await execute(
    database,
    `update broadcasts set state = 'running', running_since = now() - interval '1 hour' where id = :id`,
    {
      id,
    },
  );
  await database.raw(
    'vacuum analyze broadcast_recipients, outbound_messages, message_states, messages, scheduled_messages',
  );
  return id;
}

const counted = (database: Database) => {
  const texts: string[] = [];
  const raw: Database['raw'] = async (text, bindings) => {
    texts.push(text);
    return await database.raw(text, bindings);
  };
  const joins = () => texts.filter((text) => text.includes('outbound_messages')).length;
  return { database: { ...database, raw }, joins };
};

test('however many look at a large broadcast, its recipients are gone through once', async () => {
  const tenant = await freshTenant(store.database);
  const { wabaId } = tenant;
  const broadcastId = await broadcastWith(tenant, { sent: 20_000, pending: 10_000 });
  const { database, joins } = counted(store.database);
  const looks = await Promise.all(
    Array.from({ length: 20 }, () => broadcastOf({ database }, wabaId, broadcastId)),
  );
  expect(joins()).toBe(1);
  for (const { counts } of looks) expect(counts).toMatchObject({ read: 20_000, pending: 10_000, erased: 0 });
  // What is done with it shows at once.
  await pauseItself(store.database, { wabaId, broadcastId }, 'a test');
  await execute(
    store.database,
    `update message_states set status = 'failed' where upstream_id = 'wamid.' || cast(:broadcastId as text) || '.7'`,
    { broadcastId },
  );
  const paused = await broadcastOf({ database }, wabaId, broadcastId);
  expect([joins(), paused.state, paused.counts.read, paused.counts.failed]).toEqual([2, 'paused', 19_999, 1]);
});

test('a small broadcast is counted at each look', async () => {
  const tenant = await freshTenant(store.database);
  const broadcastId = await broadcastWith(tenant, { sent: 10, pending: 10 });
  const { database, joins } = counted(store.database);
  for (let n = 0; n < 3; n += 1) await broadcastOf({ database }, tenant.wabaId, broadcastId);
  expect(joins()).toBe(3);
});

test('recipients of a state are found page by page, each of which looks at 5,000 of a broadcast at most', {
  timeout: 900_000,
}, async () => {
  const tenant = await freshTenant(store.database);
  for (let n = LARGEST; n < RECIPIENTS; n += LARGEST)
    await broadcastWith(tenant, { sent: LARGEST, pending: 0 });
  const sent = Math.min(RECIPIENTS, LARGEST);
  const id = await broadcastWith(tenant, { sent, pending: 1_000 });
  const failed = [1, 4_999, 5_000, 5_001, sent].map((n) => `wamid.${id}.${n}`);
  await execute(
    store.database,
    `update message_states set status = 'failed' where upstream_id = any (cast(:failed as text[]))`,
    { failed },
  );
  const walk = async (state: 'failed' | 'pending') => {
    const found: string[] = [];
    const touched: number[] = [];
    for (let afterId: string | null = null, hasMore = true; hasMore; ) {
      const from = afterId;
      touched.push(
        await buffersTouched(store.database, async (explaining) => {
          await listRecipients(explaining, id, { state, afterId: from, limit: 100 });
        }),
      );
      const page = await listRecipients(store.database, id, { state, afterId: from, limit: 100 });
      found.push(...page.recipients.map(({ recipient }) => recipient));
      afterId = page.position;
      hasMore = page.hasMore;
    }
    return { found, pages: touched.length, most: Math.max(...touched) };
  };
  const all = await walk('failed');
  expect([all.found.length, new Set(all.found).size]).toEqual([5, 5]);
  expect(all.pages).toBeLessThanOrEqual(Math.ceil((sent + 1_000) / 5_000) + 1);
  // About 15 pages of 8 KiB for each that is looked at, however many there are.
  expect(all.most).toBeLessThan(5_000 * 25);
  const waiting = await walk('pending');
  expect([waiting.found.length, waiting.pages]).toEqual([1_000, 10]);
  expect(waiting.most).toBeLessThan(5_000);
});

test('what a step asks touches a few pages of a large broadcast', async () => {
  const touched = async (sent: number) => {
    const id = await broadcastWith(await freshTenant(store.database), { sent, pending: sent });
    return await buffersTouched(store.database, async (explaining) => {
      await nextPending(explaining, id, 500);
      await lastOutcomes(explaining, { broadcastId: id, since: new Date(0), limit: 200 });
      await countOpenOf(explaining, id);
    });
  };
  // 200 outcomes with what each is joined with; all of it would be some 100,000 pages.
  expect(await touched(20_000)).toBeLessThan(2_000);
});
