import { describe, expect, test, vi } from 'vitest';
import { listUnreadable } from '../../../src/ingest/bodies/quarantine.ts';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { lookForConditions } from '../../../src/ops/alerts/conditions.ts';
import { eraseCustomer } from '../../../src/ops/erasures/erasures.ts';
import type { EventType } from '../../../src/platform/event-type.ts';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { tablesHolding } from '../../support/database-scan.ts';
import { drainInbox, storedEvents, takeIn } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';
import { NUMBER, OTHER_WABA, startTestApi, WABA } from '../api/api-harness.ts';
import { client } from '../deliveries/event-fixtures.ts';
import { startErasureWorld } from '../erasures/erasure-world.ts';
import { ASHA, fill } from '../erasures/filled-world.ts';

/** A body of upstream, written out, so that the text of the value is known. */
function fieldBody(field: string, value: string, { wabaId = WABA, time = 1_790_000_000 } = {}): Buffer {
  return Buffer.from(
    `{"object":"whatsapp_business_account","entry":[{"id":"${wabaId}","time":${time},` +
      `"changes":[{"value":${value},"field":${JSON.stringify(field)}}]}]}`,
  );
}

function template(id: number, event: string, time = 1_790_000_000): Buffer {
  const value = `{"event":"${event}","message_template_id":${id},"message_template_name":"cart"}`;
  return fieldBody('message_template_status_update', value, { time });
}

const preferences = (waId: string) =>
  fieldBody(
    'user_preferences',
    `{"metadata":{"phone_number_id":"${NUMBER}"},"user_preferences":[{"wa_id":"${waId}","value":"stop","timestamp":1790000000}]}`,
  );

/** The types of the events that wait for each endpoint, by its address. */
async function waitingAt(database: Database): Promise<Record<string, string[]>> {
  const rows = await query<{ url: string; types: string[] }>(
    database,
    `select w.url, array_agg(e.event_type order by q.position) as types
       from delivery_queue q join webhook_endpoints w on w.id = q.endpoint_id
       join events e on e.id = q.event_uuid group by w.url`,
  );
  return Object.fromEntries(rows.map(({ url, types }) => [new URL(url).hostname.split('.')[0], types]));
}

async function endpoints(database: Database, wanted: Record<string, EventType[] | null>, wabaId = WABA) {
  for (const [name, types] of Object.entries(wanted))
    await addEndpoint(database, wabaId, `https://${name}.example/hook`, types);
}

async function reasonsOf(database: Database): Promise<string[]> {
  const rows = await query<{ reason: string }>(
    database,
    'select distinct reason from quarantine_counts order by 1',
  );
  return rows.map(({ reason }) => reason);
}

describe('a change in another field than messages', () => {
  test('goes to endpoints that name its field or all of them, and changes nothing for the others', async () => {
    const { database } = await seededWorkerDatabase();
    await endpoints(database, {
      plain: null,
      six: ['message', 'status'],
      named: ['upstream.account_update', 'message'],
      all: ['upstream.*'],
    });
    await endpoints(database, { foreign: ['upstream.*'] }, OTHER_WABA);
    await takeIn(
      database,
      ...['fld_account_update_violation', 'fld_message_template_status_update', 'in_text'].map(fixtureBody),
    );
    expect(await waitingAt(database)).toEqual({
      plain: ['message'],
      six: ['message'],
      named: ['upstream.account_update', 'message'],
      all: ['upstream.account_update', 'upstream.message_template_status_update'],
    });
  });

  test('has the envelope of all events, with the value as upstream wrote it', async () => {
    const { database } = await seededWorkerDatabase();
    const value = '{ "b": 1.50,"a":12345678901234567890, "t":"\\u00e9\\/", "a":2 }';
    await takeIn(database, fieldBody('some_future_field', value));
    const [event] = await storedEvents(database);
    expect(event?.body).toContain(`"data":{"field":"some_future_field","value":${value}}}`);
    expect(JSON.parse(event?.body ?? '')).toMatchObject({
      eventType: 'upstream.some_future_field',
      userId: expect.any(Number),
      wabaId: WABA,
      phoneNumberId: null,
      eventId: `upstream.some_future_field:${WABA}`,
    });
    await takeIn(database, preferences('12025550143'));
    expect(JSON.parse((await storedEvents(database)).at(-1)?.body ?? '').phoneNumberId).toBe(NUMBER);
  });

  test('counts once however often it comes, and again when the state returns later', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, template(1, 'PAUSED'), template(1, 'PAUSED'));
    await takeIn(database, template(1, 'PAUSED'));
    expect(await storedEvents(database)).toHaveLength(1);
    await takeIn(database, template(1, 'APPROVED', 1_790_000_100), template(1, 'PAUSED', 1_790_000_200));
    expect(await storedEvents(database)).toHaveLength(3);
  });

  test('keeps the order of its object, and waits for no other object', async () => {
    const { database } = await seededWorkerDatabase();
    await endpoints(database, { all: ['upstream.*'] });
    await takeIn(database, template(1, 'PENDING'), template(2, 'PENDING'), template(1, 'APPROVED'));
    const events = await storedEvents(database);
    expect(events.map(({ eventId, sequence }) => [eventId, sequence])).toEqual([
      ['upstream.message_template_status_update:1', '1'],
      ['upstream.message_template_status_update:2', '1'],
      ['upstream.message_template_status_update:1', '2'],
    ]);
    const states = await query<{ state: string }>(
      database,
      'select state from delivery_queue order by position',
    );
    expect(states.map(({ state }) => state)).toEqual(['due', 'due', 'queued']);
  });

  test('passes a filter of numbers when it concerns none of them, and not when it concerns another', async () => {
    const { database } = await seededWorkerDatabase();
    await endpoints(database, { one: ['upstream.*'] });
    await execute(database, `update webhook_endpoints set phone_number_ids = '{800000000000112}'`);
    await takeIn(database, preferences('12025550143'), template(1, 'APPROVED'));
    expect(await waitingAt(database)).toEqual({ one: ['upstream.message_template_status_update'] });
  });

  test('harms no sibling, whatever its name and value are', async () => {
    const { database } = await seededWorkerDatabase();
    const deep = `${'['.repeat(4_000)}${']'.repeat(4_000)}`;
    const odd = [
      ['Messages', '{}'],
      ['a b', '{}'],
      ['x'.repeat(65), '{}'],
      ["'; drop table events; --", '{}'],
      ['deep_field', deep],
      ['null_value', 'null'],
      ['number_value', '1e400'],
      ['list_value', '[{"id":"\\ud800\\u0000"}]'],
      ['odd_id', `{"id":"\\ud800\\u0000${'y'.repeat(600)}"}`],
      ['nul_id', '{"id":"a\\u0000b"}'],
    ] as const;
    const changes = odd.map(([field, value]) => `{"field":${JSON.stringify(field)},"value":${value}}`);
    const message = JSON.parse(fixtureBody('in_text').toString()).entry[0].changes[0];
    const body = `{"entry":[{"id":"${WABA}","changes":[${changes.join(',')},${JSON.stringify(message)}]}]}`;
    await takeIn(database, Buffer.from(body));
    const events = await storedEvents(database);
    expect(events.map(({ type }) => type).sort()).toEqual([
      'message',
      'upstream.list_value',
      'upstream.nul_id',
      'upstream.null_value',
      'upstream.number_value',
      'upstream.odd_id',
    ]);
    for (const { body: text, eventId } of events) {
      expect(JSON.parse(text ?? '').eventId).toBe(eventId);
      expect(eventId.length).toBeLessThan(600);
    }
    const reasons = await query<{ reason: string; count: number }>(
      database,
      'select reason, sum(count)::integer as count from quarantine_counts group by 1 order by 1',
    );
    expect(reasons).toEqual([
      { reason: 'too_deep', count: 1 },
      { reason: 'unknown_field', count: 4 },
    ]);
  });

  test('of a WABA that nobody has, or that its app secret may not speak for, becomes no event', async () => {
    const { database } = await seededWorkerDatabase();
    const signedFor = (wabaIds: string[]) => ({ body: template(1, 'APPROVED'), signedFor: wabaIds });
    await insertBodies(database, [
      fieldBody('account_update', '{}', { wabaId: '900000000000999' }),
      signedFor([OTHER_WABA]),
    ]);
    await drainInbox(database);
    expect(await storedEvents(database)).toEqual([]);
    const reasons = await query<{ reason: string; field: string }>(
      database,
      'select reason, field from quarantine_counts order by reason',
    );
    expect(reasons).toEqual([
      { reason: 'not_signed_for_waba', field: 'message_template_status_update' },
      { reason: 'unknown_waba', field: 'account_update' },
    ]);
    // Nobody is to be warned of WABAs of which an app happens to receive further fields.
    const troubles = await listUnreadable(database, 10);
    expect(troubles.map(({ reasons }) => reasons)).toEqual([['not_signed_for_waba']]);
    await insertBodies(database, [signedFor([WABA])]);
    await drainInbox(database);
    expect(await storedEvents(database)).toHaveLength(1);
  });

  test('of a partner goes to the WABA that it names, whatever the id of its entry is', async () => {
    const { database } = await seededWorkerDatabase();
    const partner = (wabaId: string) =>
      fieldBody('account_update', `{"event":"PARTNER_REMOVED","waba_info":{"waba_id":"${wabaId}"}}`, {
        wabaId: '950000000000001',
      });
    const signedFor = (wabaIds: string[]) => ({ body: partner(WABA), signedFor: wabaIds });
    await insertBodies(database, [partner(WABA), partner('900000000000999'), signedFor([OTHER_WABA])]);
    await drainInbox(database);
    expect((await storedEvents(database)).map(({ body }) => JSON.parse(body ?? '').wabaId)).toEqual([WABA]);
    const rows = await query(database, 'select waba_id as waba from inbox order by id');
    expect(rows).toEqual([{ waba: WABA }, { waba: '900000000000999' }, { waba: WABA }]);
    expect(await reasonsOf(database)).toEqual(['not_signed_for_waba', 'unclaimed_account']);
    const unclaimed = (await lookForConditions(database, new Date())).flatMap((looked) =>
      'conditions' in looked && looked.kind === 'account_unclaimed' ? looked.conditions : [],
    );
    expect(unclaimed.map(({ subject }) => subject)).toEqual(['900000000000999']);
  });

  test('without a WABA goes to the one that has its phone number, and to none that may not be meant', async () => {
    const { database } = await seededWorkerDatabase();
    const rename = async (phone: string) => {
      const text = 'update phone_numbers set display_phone_number = :phone where waba_id = :wabaId';
      await execute(database, text, { phone, wabaId: OTHER_WABA });
    };
    const zero = (phone: string, time: number) =>
      fieldBody('account_update', `{"phone_number":"${phone}","event":"ACCOUNT_RESTRICTION"}`, {
        wabaId: '0',
        time,
      });
    await rename('+1 202-555-0111');
    await takeIn(database, zero('+1 202-555-0100', 1), zero('12025550999', 2), zero('none', 3));
    await insertBodies(database, [{ body: zero('12025550100', 4), signedFor: [OTHER_WABA] }]);
    await drainInbox(database);
    const events = await storedEvents(database);
    expect(events.map(({ body, eventId }) => [JSON.parse(body ?? '').wabaId, eventId])).toEqual([
      [WABA, 'upstream.account_update:12025550100'],
    ]);
    const troubles = await query(database, 'select waba_id as waba, kind from upstream_troubles');
    expect(troubles).toEqual([{ waba: WABA, kind: 'account_restricted' }]);
    expect(await reasonsOf(database)).toEqual(['not_signed_for_waba', 'unclaimed_account']);
    await rename('+1 202 555 0100');
    await takeIn(database, zero('12025550100', 5));
    expect(await storedEvents(database)).toHaveLength(1);
  });

  test('beside a message of a customer who is erased goes with it, out of a body that stays in quarantine too', async () => {
    const world = await startErasureWorld();
    await fill(world);
    const value = (from: string, id: string, summary: string) =>
      `{"metadata":{"phone_number_id":"${NUMBER}"},"conversation_context":{"summary":"${summary}"},` +
      `"messages":[{"id":"${id}","from":"${from}","type":"text"},{"from":"7"}]}`;
    const changes = [
      [ASHA.waId, 'wamid.a', 'About Asha'],
      ['12025550999', 'wamid.b', 'About Bea'],
    ] as const;
    const list = changes
      .map(([from, id, said]) => `{"field":"messages","value":${value(from, id, said)}}`)
      .join();
    await takeIn(world.database, Buffer.from(`{"entry":[{"id":"${WABA}","changes":[${list}]}]}`));
    expect((await tablesHolding(world.database, ['About Asha'])).join()).toMatch(/events_.*inbox_/);
    const { erasureId } = await eraseCustomer(world.tools, WABA, { phone: ASHA.waId });
    await world.erase(erasureId);
    expect(await tablesHolding(world.database, [ASHA.waId, 'About Asha'])).toEqual([]);
    expect((await tablesHolding(world.database, ['About Bea'])).join()).toMatch(/events_.*inbox_/);
  });

  test('leaves nothing of a customer who is erased', async () => {
    const world = await startErasureWorld();
    await fill(world);
    await endpoints(world.database, { all: ['upstream.*'] });
    await takeIn(world.database, preferences(ASHA.waId), preferences('12025550999'));
    const { erasureId } = await eraseCustomer(world.tools, WABA, { phone: ASHA.waId });
    const held = (await tablesHolding(world.database, [ASHA.waId])).join();
    for (const table of ['events_', 'inbox_', 'ordering_keys']) expect(held).toContain(table);
    await world.erase(erasureId);
    expect(await tablesHolding(world.database, [ASHA.waId])).toEqual([]);
    const left = (await storedEvents(world.database)).filter(({ type }) => type.startsWith('upstream.'));
    expect(left.map(({ eventId }) => eventId)).toEqual([
      'upstream.group_lifecycle_update:group-447711',
      'upstream.user_preferences:12025550999',
    ]);
  });
});

describe('the API', () => {
  test('adds endpoints for fields by name, and says why it refuses one', async () => {
    const api = await startTestApi();
    const { call } = await client(api);
    const add = async (eventTypes: unknown) =>
      await call('POST', '/api/external/webhook-endpoints', { url: 'https://shop.example/hook', eventTypes });
    const wanted = ['message', 'upstream.account_update', 'upstream.some_future_field', 'upstream.*'];
    expect((await add(wanted)).json().eventTypes).toEqual(wanted);
    for (const bad of ['upstream.', 'upstream.A', 'upstream.a.b', 'upstream', `upstream.${'a'.repeat(65)}`])
      expect([bad, (await add([bad])).statusCode]).toEqual([bad, 400]);
    // What a value says without items.
    expect((await add(['upstream.messages'])).json().eventTypes).toEqual(['upstream.messages']);
  });

  test('sends to a newer endpoint what it never had, lists it by type and shows it', async () => {
    const api = await startTestApi();
    const { database } = api;
    const { call } = await client(api);
    await takeIn(database, template(1, 'REJECTED'), fixtureBody('in_text'), preferences('12025550143'));
    const all = await addEndpoint(database, WABA, 'https://all.example/hook', ['upstream.*']);
    const named = await addEndpoint(database, WABA, 'https://named.example/hook', [
      'upstream.user_preferences',
    ]);
    const plain = await addEndpoint(database, WABA, 'https://plain.example/hook');
    const count = async (selection: object) =>
      (
        await call('POST', '/api/external/replays', { states: ['not_sent'], dryRun: true, ...selection })
      ).json();
    expect(await count({})).toMatchObject({
      byEndpoint: { [all.id]: 2, [named.id]: 1, [plain.id]: 1 },
      byType: { message: 1, 'upstream.user_preferences': 2, 'upstream.message_template_status_update': 1 },
    });
    expect((await count({ eventTypes: ['upstream.message_template_status_update'] })).deliveries).toBe(1);
    expect((await count({ eventTypes: ['upstream.*'] })).deliveries).toBe(3);
    const list = async (type: string) => (await call('GET', `/api/external/events?type=${type}`)).json().data;
    for (const order of ['asc', 'desc']) {
      const page = async () => (await call('GET', `/api/external/events?order=${order}&limit=1`)).json();
      await vi.waitUntil(async () => (await page()).data.length > 0, 10_000);
      expect([order, (await page()).data[0].eventType, (await page()).hasMore]).toEqual([
        order,
        'message',
        false,
      ]);
    }
    expect(await list('upstream.*')).toHaveLength(2);
    expect(await list('message')).toHaveLength(1);
    const [event] = await list('upstream.message_template_status_update');
    expect(event).toMatchObject({
      phoneNumberId: null,
      body: { data: { field: 'message_template_status_update', value: { event: 'REJECTED' } } },
    });
    expect((await call('GET', `/api/external/events/${event.id}`)).statusCode).toBe(200);
    const foreign = await client(api, OTHER_WABA);
    expect((await foreign.call('GET', `/api/external/events/${event.id}`)).statusCode).toBe(404);
  });
});
