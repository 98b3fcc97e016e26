import { describe, expect, test } from 'vitest';
import { insertBodies } from '../../../src/ingest/intake/store-bodies.ts';
import { execute, query } from '../../../src/platform/postgres/sql.ts';
import { drainInbox, intakeTools, storedEvents, takeIn, takeInBatch } from '../../support/take-in.ts';
import { addEndpoint } from '../../support/test-accounts.ts';
import { seededWorkerDatabase } from '../../support/test-database.ts';
import { fixtureBody, fixtureNames } from '../../support/upstream-fixtures.ts';

const typesOf = (events: { type: string }[]) => events.map((event) => event.type);

describe('what upstream sends again counts once', () => {
  test('the same body twice gives one message event', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, fixtureBody('in_text'));
    await takeIn(database, fixtureBody('in_text'));
    expect(typesOf(await storedEvents(database))).toEqual(['message']);
  });

  test('the same body twenty times in parallel, taken in by four workers, gives one message event', async () => {
    const { database } = await seededWorkerDatabase();
    await Promise.all(Array.from({ length: 20 }, () => insertBodies(database, [fixtureBody('in_text')])));
    await Promise.all(Array.from({ length: 4 }, () => drainInbox(database)));
    await drainInbox(database);
    expect(typesOf(await storedEvents(database))).toEqual(['message']);
  });

  test('a body that comes again a week later gives no second event', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, fixtureBody('in_text'));
    await execute(database, `update dedup_keys set first_seen_at = now() - interval '8 days'`);
    const { forgetOldDedupKeys } = await import('../../../src/ingest/intake/dedup-keys.ts');
    expect(await forgetOldDedupKeys(database, 1_000)).toBe(0);
    await takeIn(database, fixtureBody('in_text'));
    expect(typesOf(await storedEvents(database))).toEqual(['message']);
  });

  test('a body with 60 statuses gives 60 events in its order, whether the messages are known or not', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, fixtureBody('batch_60_statuses'));
    const events = await storedEvents(database);
    const body = JSON.parse(fixtureBody('batch_60_statuses').toString());
    const statuses = body.entry[0].changes[0].value.statuses;
    expect(events.map((event) => event.eventId)).toEqual(statuses.map((status: { id: string }) => status.id));
    expect(JSON.parse(events[59]?.body ?? '').data.status).toEqual(statuses[59]);
  });

  test('a placeholder is followed by the real message under the same id, and both are told', async () => {
    const { database } = await seededWorkerDatabase();
    const real = JSON.parse(fixtureBody('in_text').toString());
    const placeholder = structuredClone(real);
    const message = placeholder.entry[0].changes[0].value.messages[0];
    message.type = 'unsupported';
    delete message.text;
    message.errors = [{ code: 131060, title: 'This message is unavailable' }];
    await takeIn(database, Buffer.from(JSON.stringify(placeholder)), fixtureBody('in_text'));
    expect(typesOf(await storedEvents(database))).toEqual(['message', 'message']);
    // They came in one batch, so nobody has seen the placeholder.
    const rows = await query<{ type: string }>(database, 'select type from messages');
    expect(rows).toEqual([{ type: 'text' }]);
  });
});

describe('nothing harms anything else', () => {
  test('every fixture goes through in one batch, and every tenant sees only what is its own', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, ...fixtureNames().map(fixtureBody));
    const events = await storedEvents(database);
    expect(events.length).toBeGreaterThan(100);
    for (const event of events) {
      if (event.body !== null) expect(JSON.parse(event.body).wabaId).toBe(event.wabaId);
    }
    const failed = await query(
      database,
      `select id, notes from inbox where state = 'failed' or state = 'new'`,
    );
    expect(failed).toEqual([]);
  });

  test('a body with two entries of two tenants gives each tenant only its own', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, fixtureBody('batch_multi_entry_two_wabas'));
    const events = await storedEvents(database);
    expect(new Set(events.map((event) => event.wabaId))).toEqual(
      new Set(['900000000000101', '900000000000202']),
    );
  });

  test('bodies that are not JSON stay, marked with the reason, while their neighbours are taken in', async () => {
    const { database } = await seededWorkerDatabase();
    await takeIn(database, Buffer.from('{"object":'), fixtureBody('in_text'), Buffer.from([0, 255]));
    expect(typesOf(await storedEvents(database))).toEqual(['message']);
    const kept = await query<{ state: string; body: Buffer; notes: { reason: string }[] }>(
      database,
      `select state, body, notes from inbox where state = 'failed' order by id`,
    );
    expect(kept.map((row) => row.body.toString('latin1'))).toEqual(['{"object":', '\u0000ÿ']);
    for (const row of kept) expect(row.notes[0]?.reason).not.toBe('');
  });

  test('an item that the database refuses is quarantined alone; it goes through once the cause is gone', async () => {
    const { database } = await seededWorkerDatabase();
    await database.raw(
      `create function refuse() returns trigger language plpgsql as $$ begin
         if new.content like '%Corrected text%' then raise exception 'poison'; end if; return new; end $$;
       create trigger refuse before insert on messages for each row execute function refuse()`,
    );
    const bodies = ['in_text', 'in_edit_text', 'in_image_caption_url', 'in_order'];
    await takeIn(database, ...bodies.map(fixtureBody));
    expect(typesOf(await storedEvents(database)).sort()).toEqual(['message', 'message', 'message', 'order']);
    const failed = await query<{ notes: unknown }>(
      database,
      `select notes from inbox where state = 'failed'`,
    );
    expect(failed).toEqual([
      { notes: [{ path: 'entry[0].changes[0].value.messages[0]', reason: 'failed' }] },
    ]);
    await execute(database, 'drop trigger refuse on messages');
    const { retryInbox } = await import('../../../src/ingest/bodies/quarantine.ts');
    expect(await retryInbox(database, ['failed'])).toBe(1);
    await drainInbox(database);
    expect((await storedEvents(database)).length).toBe(5);
  });

  test('unknown numbers and unreadable fields emit nothing, are kept and counted; errors of a value are of a field', async () => {
    const { database } = await seededWorkerDatabase();
    const names = ['odd_unknown_phone_number', 'odd_dashboard_test_message', 'err_value_auth_0'];
    const odd = fixtureBody('fld_group_lifecycle_create')
      .toString()
      .replace('group_lifecycle_update', 'No field');
    await takeIn(database, ...names.map(fixtureBody), Buffer.from(odd));
    expect(typesOf(await storedEvents(database))).toEqual(['upstream.messages']);
    const counts = await query<{ reason: string; count: string }>(
      database,
      'select reason, sum(count) as count from quarantine_counts group by reason order by reason',
    );
    expect(counts).toEqual([
      { reason: 'unknown_field', count: '1' },
      { reason: 'unknown_phone_number', count: '2' },
    ]);
  });

  test('a database error that lies not in the data leaves the bodies new and is reported', async () => {
    const { database } = await seededWorkerDatabase();
    await insertBodies(database, [fixtureBody('in_text')]);
    await database.raw(
      `create function away() returns trigger language plpgsql as $$ begin
         raise exception 'going down' using errcode = '57P01'; end $$;
       create trigger away before insert on messages for each row execute function away()`,
    );
    await expect(takeInBatch(intakeTools(database))).rejects.toThrow('going down');
    await execute(database, 'drop trigger away on messages');
    await drainInbox(database);
    expect(typesOf(await storedEvents(database))).toEqual(['message']);
  });
});

describe('payments and statuses', () => {
  test('a payment life cycle gives four events in one lane; the repeated capture none', async () => {
    const { database } = await seededWorkerDatabase();
    for (const name of ['pay_pending', 'pay_captured_upi', 'pay_captured_upi', 'pay_refund_pending']) {
      await takeIn(database, fixtureBody(name));
    }
    await takeIn(database, fixtureBody('pay_refund_success_two'));
    const events = await storedEvents(database);
    expect(typesOf(events)).toEqual(['payment', 'payment', 'payment', 'payment']);
    expect(events.map((event) => event.sequence)).toEqual(['1', '2', '3', '4']);
    const lanes = await query(database, 'select distinct lane from events');
    expect(lanes).toHaveLength(1);
  });

  test('statuses in reverse end at read, each told once in the order of arrival', async () => {
    const { database } = await seededWorkerDatabase();
    for (const name of ['st_read', 'st_delivered', 'st_sent_v24']) await takeIn(database, fixtureBody(name));
    const events = await storedEvents(database);
    expect(events.map((event) => JSON.parse(event.body ?? '').data.status.status)).toEqual([
      'read',
      'delivered',
      'sent',
    ]);
    const states = await query<{ status: string }>(database, 'select status from message_states');
    expect(states).toEqual([{ status: 'read' }]);
  });
});

describe('deliveries', () => {
  test('each subscribed endpoint gets its delivery; the order event waits, reserved, for its catalog look-up', async () => {
    const { database } = await seededWorkerDatabase();
    await addEndpoint(database, '900000000000101', 'https://one.example/hook');
    await addEndpoint(database, '900000000000101', 'https://two.example/hook', ['order']);
    await addEndpoint(database, '900000000000202', 'https://three.example/hook');
    await takeIn(database, fixtureBody('in_order'));
    const queue = await query<{ endpoint_id: string; state: string; event_type: string }>(
      database,
      `select q.endpoint_id, q.state, e.event_type from delivery_queue q
         join events e on e.day = q.event_day and e.id = q.event_uuid order by q.endpoint_id, e.event_type`,
    );
    expect(queue.map((row) => [row.endpoint_id, row.event_type, row.state])).toEqual([
      ['1', 'message', 'due'],
      ['1', 'order', 'unreleased'],
      ['2', 'order', 'unreleased'],
    ]);
    const tasks = await query<{ workflow_id: string }>(database, 'select workflow_id from workflow_tasks');
    expect(tasks).toEqual([{ workflow_id: 'order/1' }]);
  });
});
