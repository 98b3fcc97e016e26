import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { claimDue } from '../../../src/engine/queue/claim.ts';
import { forgetOldOrderingKeys } from '../../../src/engine/queue/ordering-keys.ts';
import {
  applyRetention,
  dropDay,
  type RetentionDays,
} from '../../../src/ops/erasures/retention/expired-days.ts';
import { type Database, type DatabasePool, openDatabase } from '../../../src/platform/postgres/database.ts';
import { type DailyTable, DAILY_TABLES as TABLES } from '../../../src/platform/postgres/partitions.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { dueShares } from '../../support/due-shares.ts';
import { silentLogger } from '../../support/silent-logger.ts';
import { takeIn } from '../../support/take-in.ts';
import { addEndpoint, seedFixtureAccounts } from '../../support/test-accounts.ts';
import { createTestDatabase } from '../../support/test-database.ts';
import { fixtureBody } from '../../support/upstream-fixtures.ts';

const WABA = '900000000000101';
const TODAY = `(now() at time zone 'utc')::date`;

let database: DatabasePool;
let url: string;

beforeEach(async () => {
  const store = await createTestDatabase();
  ({ database, url } = store);
  await seedFixtureAccounts(database);
  return store.close;
});

const apply = (days: RetentionDays) => applyRetention({ database, logger: silentLogger }, days);

/** How many days ago each table's days were, the oldest first. */
async function agesOf(table: DailyTable): Promise<number[]> {
  const rows = await query<{ age: number }>(
    database,
    `select ${TODAY} - to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD') as age
       from pg_inherits where inhparent = cast(:table as regclass) and inhrelid::regclass::text ~ '_[0-9]{8}$'
      order by age desc`,
    { table },
  );
  return rows.map((row) => row.age).filter((age) => age > 0);
}

const oldestOf = async () =>
  Object.fromEntries(await Promise.all(TABLES.map(async (table) => [table, (await agesOf(table))[0]])));

/** A message whose event has one delivery, all of them from `age` days ago. */
async function oldDelivery(age: number): Promise<void> {
  await addEndpoint(database, WABA, 'https://tenant.example/hook');
  await takeIn(database, fixtureBody('in_text'));
  await query(database, `update events set day = ${TODAY} - ${age}`);
  await query(database, `update deliveries set day = ${TODAY} - ${age}, event_day = ${TODAY} - ${age}`);
  await query(
    database,
    `update delivery_queue set delivery_day = ${TODAY} - ${age}, event_day = ${TODAY} - ${age},
            created_at = now() - ${age} * interval '1 day'`,
  );
}

const makeDays = async () => await query(database, `select ensure_partitions(${TODAY} - 40, ${TODAY} - 1)`);

describe('days past their retention', () => {
  beforeEach(makeDays);

  test('are dropped, each table by its own time, and no other day is', async () => {
    expect(await oldestOf()).toEqual({ inbox: 40, events: 40, deliveries: 40, attempts: 40 });
    await apply({ inbox: 7, events: 30, attempts: 10 });
    expect(await oldestOf()).toEqual({ inbox: 7, events: 30, deliveries: 30, attempts: 10 });
    expect(await agesOf('events')).toHaveLength(30);
  });

  test('stay where the setting is 0', async () => {
    await apply({ inbox: 0, events: 0, attempts: 5 });
    expect(await oldestOf()).toEqual({ inbox: 40, events: 40, deliveries: 40, attempts: 5 });
  });

  test.each([30, 0])('attempts go with their deliveries at the latest (set to %d)', async (attempts) => {
    await apply({ inbox: 0, events: 20, attempts });
    expect(await oldestOf()).toMatchObject({ deliveries: 20, attempts: 20 });
  });

  test('go with all that nothing needs; what an open delivery needs stays until it is out', async () => {
    await oldDelivery(35);
    const [kept] = await query<{ id: string; day: string }>(database, 'select id, day from events');
    // Of another tenant, delivered.
    await query(
      database,
      `insert into events (day, id, waba_id, tenant_id, phone_number_id, event_type, event_id, lane, sequence, body)
       select day, gen_random_uuid(), '900000000000202', 2, '8', 'message', 'e', 'e', 1, 'x' from events;`,
    );
    await query(
      database,
      `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid, state)
       select day, gen_random_uuid(), '900000000000202', 9, day, gen_random_uuid(), 'delivered' from deliveries`,
    );
    for (const turn of ['the day is dropped', 'the default partition is cleared']) {
      await apply({ inbox: 0, events: 10, attempts: 10 });
      expect(await oldestOf(), turn).toMatchObject({ events: 10, deliveries: 10 });
      expect(await query(database, 'select id, day from events where body is not null')).toEqual([kept]);
      expect(await query(database, 'select waba_id from deliveries')).toEqual([{ waba_id: WABA }]);
    }
    const shares = await dueShares(database, 10);
    const claim = { shares, limit: 10, token: randomUUID(), leaseMs: 30_000 };
    const claimed = await claimDue(database, claim);
    expect(claimed.map(({ eventUuid }) => eventUuid)).toEqual([kept?.id]);
    await query(database, 'delete from delivery_queue');
    await apply({ inbox: 0, events: 10, attempts: 10 });
    expect(await query(database, 'select 1 from events')).toEqual([]);
    expect(await query(database, 'select 1 from deliveries')).toEqual([]);
  });

  test('of which too much is needed to move it keep their table, and in it only that', async () => {
    const day = `${TODAY} - 35`;
    await query(
      database,
      `insert into deliveries (day, id, waba_id, endpoint_id, event_day, event_uuid)
       select ${day}, gen_random_uuid(), :waba, 1, ${day}, gen_random_uuid() from generate_series(1, 12000)`,
      { waba: WABA },
    );
    await query(
      database,
      `insert into delivery_queue (endpoint_id, lane, state, released, delivery_day, delivery_id, event_day, event_uuid)
       select 1, id::text, 'due', true, day, id, event_day, event_uuid from deliveries limit 10500`,
    );
    await apply({ inbox: 0, events: 10, attempts: 10 });
    expect(await oldestOf()).toMatchObject({ events: 10, deliveries: 35 });
    expect(await query(database, 'select count(*)::integer as n from deliveries')).toEqual([{ n: 10_500 }]);
    await query(database, 'delete from delivery_queue where position % 2 = 0');
    await apply({ inbox: 0, events: 10, attempts: 10 });
    expect(await oldestOf()).toMatchObject({ deliveries: 10 });
    expect(await query(database, 'select count(*)::integer as n from deliveries_default')).toEqual([
      { n: 5_250 },
    ]);
  });

  test('of upstream bodies go with all that is done; the others stay, and so does the number that they wait for', async () => {
    const states = { new: 20, failed: 21, done: 21, quarantined: 21, waiting: 22 };
    for (const [state, age] of Object.entries(states))
      await query(
        database,
        `with body as (
           insert into inbox (received_day, body, state) values (${TODAY} - ${age}, '{}', :state)
           returning received_day, id, state)
         insert into waiting_bodies (waba_id, phone_number_id, received_day, inbox_id)
         select :waba, '8', received_day, id from body where state in ('waiting', 'done')`,
        { state, waba: WABA },
      );
    for (const turn of ['the days are dropped', 'the default partition is cleared']) {
      await apply({ inbox: 14, events: 0, attempts: 0 });
      expect(await oldestOf(), turn).toMatchObject({ inbox: 14 });
      const left = await query<{ state: string }>(database, 'select state from inbox order by id');
      expect(left.map(({ state }) => state)).toEqual(['new', 'failed', 'waiting']);
      expect(
        await query(database, 'select i.state from waiting_bodies w left join inbox i on i.id = w.inbox_id'),
      ).toEqual([{ state: 'waiting' }]);
    }
  });

  test('go, except the event of an order that waits for its catalog', async () => {
    await takeIn(database, fixtureBody('in_order'), fixtureBody('in_text'));
    await query(database, 'delete from delivery_queue');
    await query(database, `update events set day = ${TODAY} - 20`);
    await query(database, `update orders set event_day = ${TODAY} - 20`);
    for (const turn of ['the day is dropped', 'the default partition is cleared']) {
      await apply({ inbox: 0, events: 10, attempts: 0 });
      expect(await oldestOf(), turn).toMatchObject({ events: 10 });
      expect(await query(database, 'select event_type from events')).toEqual([{ event_type: 'order' }]);
    }
    await query(database, 'delete from workflow_tasks');
    await apply({ inbox: 0, events: 10, attempts: 0 });
    expect(await query(database, 'select 1 from events')).toEqual([]);
  });
});

describe('a day of a table that is in use', () => {
  beforeEach(makeDays);

  test('is left alone without keeping others waiting, and dropped when the table is free', async () => {
    const reader = openDatabase({ url, poolMax: 2, applicationName: 'reader' });
    const [{ day } = { day: '' }] = await query<{ day: string }>(database, `select ${TODAY} - 40 as day`);
    try {
      await reader.transaction(async (trx) => {
        await query(trx, 'select 1 from events limit 1');
        const others: number[] = [];
        let isDone = false;
        const dropping = dropDay(database, 'events', day).finally(() => {
          isDone = true;
        });
        while (!isDone) {
          const startMs = performance.now();
          await query(reader, 'select 1 from events limit 1');
          others.push(performance.now() - startMs);
        }
        expect(await dropping).toBe('busy');
        expect(Math.max(...others)).toBeLessThan(2_000);
      });
      expect((await agesOf('events'))[0]).toBe(40);
      expect(await dropDay(database, 'events', day)).toBe('dropped');
      expect((await agesOf('events'))[0]).toBe(39);
      // Another process was quicker.
      expect(await dropDay(database, 'events', day)).toBe('dropped');
    } finally {
      await reader.destroy();
    }
  });
});

/** Notes which tables are to be locked for the statements of a database. */
function notingLocks<Given extends Database>(given: Given, locked: string[]): Given {
  return {
    ...given,
    raw: (text, bindings) => {
      const [, table] = /lock table (?:only )?(\w+)/.exec(text) ?? [];
      if (table !== undefined) locked.push(table);
      return given.raw(text, bindings);
    },
    transaction: (work) => given.transaction((trx) => work(notingLocks(trx, locked))),
  };
}

describe('days of tables that a dump reads', () => {
  beforeEach(makeDays);

  test('are not even asked for, because all others would wait behind the question', async () => {
    const locked: string[] = [];
    const noting = notingLocks<Database>(database, locked);
    const retention = { inbox: 39, events: 39, attempts: 39 };
    const dump = openDatabase({ url, poolMax: 1, applicationName: 'dump' });
    try {
      await dump.transaction(async (trx) => {
        for (const table of TABLES) await query(trx, `select 1 from ${table} limit 1`);
        const applying = applyRetention({ database: noting, logger: silentLogger }, retention);
        await expect(applying).rejects.toThrow('others hold the tables');
      });
    } finally {
      await dump.destroy();
    }
    expect(locked).toEqual([]);
    await applyRetention({ database: noting, logger: silentLogger }, retention);
    expect(locked.toSorted()).toEqual(TABLES.toSorted());
  });
});

describe('ordering keys', () => {
  const keep = async (name: string, age: number, wabaId = WABA) =>
    await query(
      database,
      `insert into ordering_keys (waba_id, key, last_sequence, used_month)
       values (:wabaId, :name, 3, date_trunc('month', now() at time zone 'utc' - ${age} * interval '1 day'))`,
      { wabaId, name },
    );
  const kept = async () =>
    (await query<{ key: string }>(database, 'select key from ordering_keys order by key')).map(
      (row) => row.key,
    );

  test('are forgotten after a time without events, so many at once', async () => {
    for (let n = 0; n < 5; n += 1) await keep(`old-${n}`, 95 + n);
    await keep('young', 59);
    expect(await forgetOldOrderingKeys(database, 60, 3)).toBe(3);
    expect(await forgetOldOrderingKeys(database, 60, 3)).toBe(2);
    expect(await kept()).toEqual(['young']);
  });

  test('are kept for 60 days at least, whatever the events are', async () => {
    await keep('old', 95);
    await keep('young', 59);
    await apply({ inbox: 0, events: 1, attempts: 0 });
    expect(await kept()).toEqual(['young']);
  });

  test('that an event uses again are of its month', async () => {
    await addEndpoint(database, WABA, 'https://tenant.example/hook');
    await takeIn(database, fixtureBody('in_text'));
    await query(database, `update ordering_keys set used_month = date '2020-01-01'`);
    await query(database, 'delete from dedup_keys');
    await takeIn(database, fixtureBody('in_text'));
    expect(await query(database, 'select 1 from ordering_keys where used_month < current_date - 31')).toEqual(
      [],
    );
  });

  test('are kept while a delivery of theirs is open, and those of other keys and tenants are not', async () => {
    await oldDelivery(39);
    await query(database, `update delivery_queue set created_at = now() - interval '100 days'`);
    const [open] = await query<{ key: string }>(database, 'select lane as key from delivery_queue');
    await query(database, `delete from ordering_keys`);
    await keep(open?.key ?? '', 95);
    await keep('other', 95);
    await keep(open?.key ?? '', 95, '900000000000202');
    // It looks at each of them once.
    expect(await forgetOldOrderingKeys(database, 60, 10)).toBe(3);
    expect(await forgetOldOrderingKeys(database, 60, 10)).toBe(0);
    expect(await kept()).toEqual([open?.key]);
  });

  test('of a WABA with wider lanes are all kept while a delivery of their time is open there', async () => {
    await oldDelivery(39);
    await query(database, `delete from ordering_keys`);
    await query(database, `update webhook_endpoints set order_scope = 'endpoint'`);
    await query(
      database,
      `update delivery_queue set lane = 'endpoint', created_at = now() - interval '100 days'`,
    );
    await keep('own', 95);
    await keep('foreign', 95, '900000000000202');
    await forgetOldOrderingKeys(database, 60, 10);
    expect(await kept()).toEqual(['own']);
  });
});
