import { describe, expect, test } from 'vitest';
import { publishEvents } from '../../../src/engine/deliveries/publish.ts';
import { releaseExpired } from '../../../src/engine/queue/claim.ts';
import { removeDelivery } from '../../../src/engine/queue/remove.ts';
import { retryOne } from '../../../src/engine/queue/retry.ts';
import { stepAside } from '../../../src/engine/queue/sweep.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { publicBatchId } from '../../../src/platform/public-ids.ts';
import { claimAll } from '../../support/due-shares.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededDatabase } from '../../support/test-database.ts';
import { age, letBuffer, logged, queued, release, write } from './buffer-fixtures.ts';

const WABA = '900000000000101';

async function bufferedEndpoint(settings: Parameters<typeof letBuffer>[2] = {}) {
  const { database } = await seededDatabase();
  const { id } = await addEndpoint(database, WABA, 'https://bot.example/hook');
  await letBuffer(database, id, settings);
  return { database, id };
}

const shown = async (database: Database) =>
  (await queued(database)).map(({ state, type, count }) => `${state} ${type} ${count}`);

describe('when the wait ends', () => {
  test('messages of a conversation go out together once it has been quiet for bufferSeconds', async () => {
    const { database } = await bufferedEndpoint();
    await write(database, { id: 'wamid.1' }, { id: 'wamid.2' });
    expect(await release(database)).toBe(0);
    await age(database, 45);
    await write(database, { id: 'wamid.3' });
    await age(database, 45);
    expect(await release(database)).toBe(0);
    expect(await shown(database)).toEqual(['unreleased message 1', 'queued message 1', 'queued message 1']);
    await age(database, 15);
    expect(await release(database)).toBe(1);
    expect(await shown(database)).toEqual(['due message.batch 3']);
  });

  test('a message that stays alone goes out as it is, at the end of bufferSeconds', async () => {
    const { database } = await bufferedEndpoint();
    await write(database, { id: 'wamid.1' });
    await release(database);
    const [look] = await query<{ afterMs: number }>(
      database,
      `select cast(extract(epoch from next_attempt_at - created_at) * 1000 as float8) as "afterMs" from delivery_queue`,
    );
    // The loop looks every 250 ms.
    expect(look?.afterMs).toBeCloseTo(60_000, 0);
    await age(database, 61);
    await release(database);
    expect(await shown(database)).toEqual(['due message 1']);
    expect(await logged(database)).toMatchObject([{ sentWith: null }]);
    const { deliveries } = await claimAll(database);
    const [{ body = '' } = {}] = await logged(database);
    expect(deliveries[0]?.body?.toString()).toBe(body);
  });

  test('another event ends it at once, and follows', async () => {
    const { database } = await bufferedEndpoint();
    await write(database, { id: 'wamid.1' }, { id: 'wamid.2' });
    await release(database);
    await write(database, { id: 'wamid.3', type: 'location' }, { id: 'wamid.4' });
    expect(await release(database)).toBe(1);
    expect(await shown(database)).toEqual(['due message.batch 2', 'queued message 1', 'queued message 1']);
  });

  test('types are chosen', async () => {
    const { database } = await bufferedEndpoint({ types: ['location'] });
    await write(database, { id: 'wamid.1' }, { id: 'wamid.2', type: 'location' });
    expect(await shown(database)).toEqual(['due message 1', 'queued message 1']);
  });

  test('so does the number of messages', async () => {
    const { database } = await bufferedEndpoint({ maxMessages: 2 });
    await write(database, ...[1, 2, 3].map((n) => ({ id: `wamid.${n}` })));
    expect(await release(database)).toBe(1);
    expect(await shown(database)).toEqual(['due message.batch 2', 'queued message 1']);
  });

  test('so do 256 KiB', async () => {
    const { database } = await bufferedEndpoint();
    await write(database, ...[1, 2, 3].map((n) => ({ id: `wamid.${n}`, text: 'x'.repeat(120_000) })));
    expect(await release(database)).toBe(1);
    expect(await shown(database)).toEqual(['due message.batch 2', 'queued message 1']);
  });

  test('so does the age of the first message, however busy the conversation is', async () => {
    const { database } = await bufferedEndpoint({ maxSeconds: 80 });
    await write(database, { id: 'wamid.1' });
    await age(database, 40);
    await write(database, { id: 'wamid.2' });
    await age(database, 40);
    await write(database, { id: 'wamid.3' });
    expect(await release(database)).toBe(1);
    expect(await shown(database)).toEqual(['due message.batch 3']);
  });

  test('a clock that is set back does not prolong it', async () => {
    const { database } = await bufferedEndpoint();
    await write(database, { id: 'wamid.1' });
    await release(database);
    await age(database, -3_600);
    expect(await release(database)).toBe(1);
    expect(await shown(database)).toEqual(['due message 1']);
  });

  test('switching off lets all go, one after the other', async () => {
    const { database, id } = await bufferedEndpoint();
    await write(database, ...[1, 2, 3].map((n) => ({ id: `wamid.${n}` })));
    await release(database);
    await letBuffer(database, id, { seconds: 0 });
    await age(database, 61);
    expect(await release(database)).toBe(1);
    expect(await shown(database)).toEqual(['due message 1', 'queued message 1', 'queued message 1']);
    const [left] = await query(
      database,
      'select count(*)::integer as n from delivery_queue where not released',
    );
    expect(left).toEqual({ n: 0 });
  });
});

/** Three messages that go out together. */
async function batch() {
  const { database, id } = await bufferedEndpoint();
  await write(database, ...[1, 2, 3].map((n) => ({ id: `wamid.${n}` })));
  await age(database, 61);
  await release(database);
  const [head] = await queued(database);
  return { database, endpointId: id, headId: head?.id ?? '' };
}

describe('a batch', () => {
  test('has the envelopes as they would have come alone, in their order, and every delivery names it', async () => {
    const { database, headId } = await batch();
    const messages = await logged(database);
    const { deliveries } = await claimAll(database);
    const eventId = publicBatchId(headId);
    expect(deliveries).toHaveLength(1);
    expect(deliveries[0]).toMatchObject({ eventType: 'message.batch', eventId, eventUuid: headId });
    const events = messages.map(({ body }) => body).join(',');
    expect(deliveries[0]?.body?.toString()).toBe(
      `{"eventType":"message.batch","eventId":"${eventId}","count":3,"events":[${events}]}`,
    );
    expect(messages.map(({ sentWith }) => sentWith)).toEqual([headId, headId, headId]);
  });

  test('is attempted again with the same id and bytes when its process vanished before it recorded the attempt', async () => {
    const { database } = await batch();
    const first = await claimAll(database);
    await write(database, { id: 'wamid.4' });
    await execute(
      database,
      `update delivery_queue set lease_until = now() - interval '1 second' where state = 'claimed'`,
    );
    expect(await releaseExpired(database, { withinSeconds: 60, limit: 10 })).toBe(1);
    const second = await claimAll(database);
    expect(second.deliveries).toEqual(first.deliveries);
    expect(await shown(database)).toEqual(['claimed message.batch 3', 'queued message 1']);
  });

  test('is dropped whole, whichever of its deliveries is dropped, and the next goes', async () => {
    const { database, headId } = await batch();
    await write(database, { id: 'wamid.4' });
    expect(await database.transaction((trx) => removeDelivery(trx, headId, 'dropped by a test'))).toBe(
      'removed',
    );
    expect(await shown(database)).toEqual(['unreleased message 1']);
    expect((await logged(database)).map(({ state }) => state)).toEqual([
      'dropped',
      'dropped',
      'dropped',
      'pending',
    ]);
  });

  test('steps aside as one, and the log says so of each', async () => {
    const { database, headId } = await batch();
    await write(database, { id: 'wamid.4' });
    await execute(
      database,
      `update delivery_queue
          set state = 'retrying', attempts = 3, next_attempt_at = now() + interval '1 hour',
              first_failed_at = now() - interval '16 minutes', blocks = 'other'
        where delivery_id = :headId`,
      { headId },
    );
    await execute(database, `update endpoint_health set mode_changed_at = now() - interval '1 day'`);
    expect(await stepAside(database, { defaultSeconds: 0, limit: 10 })).toBe(1);
    expect(await shown(database)).toEqual(['retrying message.batch 3', 'unreleased message 1']);
    const aside = await query(
      database,
      'select count(*)::integer as n from deliveries where stepped_aside_at is not null',
    );
    expect(aside).toEqual([{ n: 3 }]);
  });

  test('is retried now as one, and the log says so of each', async () => {
    const { database, headId } = await batch();
    await execute(
      database,
      `update delivery_queue set state = 'retrying', attempts = 1, next_attempt_at = now() + interval '1 hour'`,
    );
    expect(await database.transaction((trx) => retryOne(trx, headId))).toBe(true);
    expect(await shown(database)).toEqual(['due message.batch 3']);
    const due = await query(
      database,
      'select count(*)::integer as n from deliveries where next_attempt_at <= now()',
    );
    expect(due).toEqual([{ n: 3 }]);
  });
});

test('conversations do not wait for each other: 1,000 of them at once', async () => {
  const { database } = await bufferedEndpoint();
  const customers = Array.from({ length: 1_000 }, (_, n) => String(12_025_560_000 + n));
  const events = [1, 2].flatMap((turn) =>
    customers.map((from, n) => ({
      ...{ wabaId: WABA, tenantId: '1', phoneNumberId: null, messageId: null },
      ...{ type: 'message' as const, eventId: `wamid.${from}-${turn}`, laneKey: `wamid.${from}-${turn}` },
      conversationId: String(n + 1),
      dataJson: JSON.stringify({ message: { type: 'text', from } }),
    })),
  );
  await database.transaction((trx) => publishEvents(trx, events, new Date()));
  await release(database);
  await age(database, 61);
  expect(await release(database)).toBe(1_000);
  const batches = await query<{ customers: string[] }>(
    database,
    `select array(select distinct e -> 'data' -> 'message' ->> 'from' from jsonb_array_elements(b.body -> 'events') as e) as customers
       from (select convert_from(body, 'UTF8')::jsonb as body from events where event_type = 'message.batch') as b`,
  );
  expect(batches.flatMap((one) => one.customers).toSorted()).toEqual(customers);
  expect(await query(database, 'select distinct state from delivery_queue')).toEqual([{ state: 'due' }]);
});
