import { beforeEach, describe, expect, test } from 'vitest';
import { type DatabasePool, openDatabase } from '../../../src/platform/postgres/database.ts';
import { type DailyTable, DAILY_TABLES as TABLES } from '../../../src/platform/postgres/partitions.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import {
  applyRetention,
  dropDay,
  forgetOldOrderingKeys,
  type RetentionDays,
} from '../../../src/worker/housekeeping/expired-days.ts';
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
  await query(database, `select ensure_partitions(${TODAY} - 40, ${TODAY} - 1)`);
  return store.close;
});

const apply = (days: RetentionDays) => applyRetention({ database, logger: silentLogger }, days);

/** How many days ago each table's days were, the oldest first. */
async function agesOf(table: DailyTable): Promise<number[]> {
  const rows = await query<{ age: number }>(
    database,
    `select ${TODAY} - to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD') as age
       from pg_inherits where inhparent = cast(? as regclass) and inhrelid::regclass::text ~ '_[0-9]{8}$'
      order by age desc`,
    [table],
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

describe('days past their retention', () => {
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

  test('stay while a delivery of theirs is open, and go when it is out', async () => {
    await oldDelivery(35);
    await apply({ inbox: 0, events: 10, attempts: 10 });
    expect(await agesOf('events')).toEqual([35, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    expect(await agesOf('deliveries')).toEqual([35, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    expect(await query(database, 'select 1 from events where body is not null')).toHaveLength(1);
    await query(database, 'delete from delivery_queue');
    await apply({ inbox: 0, events: 10, attempts: 10 });
    expect(await oldestOf()).toMatchObject({ events: 10, deliveries: 10 });
  });

  test('of upstream bodies stay while one is not taken in or failed', async () => {
    for (const [state, age] of Object.entries({ new: 20, failed: 21, done: 22, quarantined: 23 }))
      await query(
        database,
        `insert into inbox (received_day, body, state) values (${TODAY} - ${age}, '{}', ?)`,
        [state],
      );
    await apply({ inbox: 14, events: 0, attempts: 0 });
    expect((await agesOf('inbox')).filter((age) => age > 14)).toEqual([21, 20]);
  });

  test('of events stay from the day on of which an order waits for its catalog', async () => {
    await query(
      database,
      `insert into workflow_tasks (workflow_id, workflow_type, waba_id, event_id, argument, created_at)
       values ('order/1', 'enrichOrder', ?, 'o', '{}', now() - interval '15 days')`,
      [WABA],
    );
    await apply({ inbox: 0, events: 5, attempts: 0 });
    expect((await agesOf('events')).slice(0, 3)).toEqual([15, 14, 13]);
    expect((await agesOf('deliveries'))[0]).toBe(5);
  });
});

describe('a day of a table that is in use', () => {
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

describe('ordering keys', () => {
  const keep = async (name: string, age: number) =>
    await query(
      database,
      `insert into ordering_keys (waba_id, key, last_sequence, updated_at)
       values (?, ?, 3, now() - ${age} * interval '1 day')`,
      [WABA, name],
    );
  const kept = async () =>
    (await query<{ key: string }>(database, 'select key from ordering_keys order by key')).map(
      (row) => row.key,
    );

  test('are forgotten after a time without events, so many at once', async () => {
    for (let n = 0; n < 5; n += 1) await keep(`old-${n}`, 61 + n);
    await keep('young', 59);
    expect(await forgetOldOrderingKeys(database, 60, 3)).toBe(3);
    expect(await forgetOldOrderingKeys(database, 60, 3)).toBe(2);
    expect(await kept()).toEqual(['young']);
  });

  test('are kept for 60 days at least, whatever the events are', async () => {
    await keep('old', 61);
    await keep('young', 59);
    await apply({ inbox: 0, events: 1, attempts: 0 });
    expect(await kept()).toEqual(['young']);
  });

  test('are all kept while a delivery of their time is open', async () => {
    await oldDelivery(39);
    await query(database, `update delivery_queue set created_at = now() - interval '70 days'`);
    await keep('old', 65);
    expect(await forgetOldOrderingKeys(database, 60, 10)).toBe(0);
    await query(database, `update delivery_queue set created_at = now()`);
    expect(await forgetOldOrderingKeys(database, 60, 10)).toBe(1);
  });
});
