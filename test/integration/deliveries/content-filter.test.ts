import { expect, test } from 'vitest';
import { filteredDeliveries } from '../../../src/engine/deliveries/content-filter.ts';
import { publishEvents } from '../../../src/engine/deliveries/publish.ts';
import { releaseReservedEvent } from '../../../src/engine/deliveries/release-event.ts';
import { findEvent, readEventBodies } from '../../../src/features/delivery-log/events.ts';
import { endpointsThatFilter } from '../../../src/features/endpoints/filtered-endpoints.ts';
import { countSelection } from '../../../src/features/replays/replay-selection.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { testWorkerDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';

const WABA = '900000000000101';

/** An endpoint without a filter and one with these conditions. */
async function twoEndpoints(...filter: string[]) {
  const { database } = await testWorkerDatabase();
  const tenants = await seedFixtureAccounts(database);
  const all = await addEndpoint(database, WABA, 'https://8.8.8.8/all');
  const some = await addEndpoint(database, WABA, 'https://8.8.8.8/some');
  await execute(database, 'update webhook_endpoints set filter = cast(:filter as text[]) where id = :id', {
    id: some.id,
    filter,
  });
  return { database, tenantId: tenants.get(WABA) ?? '', all: all.id, some: some.id };
}

async function sentTo(database: Database, endpointId: string) {
  return await query(
    database,
    `select d.state, ev.event_type as type, convert_from(ev.body, 'utf8')::jsonb -> 'data' -> 'message' ->> 'type' as kind
       from deliveries d join events ev on ev.day = d.event_day and ev.id = d.event_uuid
      where d.endpoint_id = :endpointId order by d.id`,
    { endpointId },
  );
}

test('an event that the filter does not take makes no delivery for this endpoint and one for the others', async () => {
  const { database, all, some } = await twoEndpoints(
    '$.message.type equals "text"',
    'not $.message.context exists',
  );
  let counted = 0;
  filteredDeliveries.note = () => {
    counted += 1;
  };
  await takeIn(database, ...['in_text', 'in_text_reply_context', 'in_location_named'].map(fixtureBody));
  filteredDeliveries.note = null;
  expect((await sentTo(database, all)).length).toBe(3);
  expect(await sentTo(database, some)).toEqual([{ state: 'pending', type: 'message', kind: 'text' }]);
  expect(counted).toBe(2);

  const events = await query<{ id: string }>(database, 'select id from events order by id');
  const filtered = await Promise.all(
    events.map(async ({ id }) => {
      const event = await findEvent(database, WABA, id);
      if (event === null) throw new Error('no event');
      const bodies = await readEventBodies(database, WABA, [event]);
      return await endpointsThatFilter(database, WABA, { event, body: bodies.get(id) });
    }),
  );
  expect(filtered.flat()).toEqual([some, some]);
});

test('a replay of what was not sent takes what the filter spared', async () => {
  const { database, some } = await twoEndpoints('$.message.type equals "image"');
  await takeIn(database, fixtureBody('in_text'));
  const selection = {
    deliveryIds: null,
    endpointId: some,
    from: null,
    to: new Date(Date.now() + 60_000).toISOString(),
    eventTypes: null,
    states: ['not_sent' as const],
  };
  expect(await countSelection(database, WABA, selection, 10)).toMatchObject([
    { endpointId: some, deliveries: 1 },
  ]);
});

test('an event whose data comes later is judged when it comes: its delivery is dropped, and the next one goes', async () => {
  const { database, tenantId, all, some } = await twoEndpoints('$.total equals 2');
  const event = {
    wabaId: WABA,
    tenantId,
    phoneNumberId: null,
    type: 'order' as const,
    laneKey: 'order-1',
    conversationId: null,
    messageId: null,
    dataJson: null,
  };
  const published = await database.transaction(
    async (trx) =>
      await publishEvents(
        trx,
        [1, 2].map((n) => ({ ...event, eventId: `order-${n}` })),
        new Date(),
      ),
  );
  for (const [index, { day, uuid }] of published.entries()) {
    const released = { wabaId: WABA, day, uuid, dataJson: `{"total":${index + 1}}` };
    await database.transaction(async (trx) => await releaseReservedEvent(trx, released, new Date()));
  }
  const states = async (endpointId: string) =>
    (
      await query<{ log: string; queue: string | null }>(
        database,
        `select d.state as log, q.state as queue
           from deliveries d left join delivery_queue q on q.delivery_id = d.id
          where d.endpoint_id = :endpointId order by d.id`,
        { endpointId },
      )
    ).map(({ log, queue }) => [log, queue]);
  expect(await states(all)).toEqual([
    ['pending', 'due'],
    ['pending', 'queued'],
  ]);
  expect(await states(some)).toEqual([
    ['dropped', null],
    ['pending', 'due'],
  ]);
});
