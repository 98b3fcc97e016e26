import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { beforeEach, describe, expect, test } from 'vitest';
import { insertBodies } from '../../../../src/ingest/intake/store-bodies.ts';
import {
  type Database,
  type DatabasePool,
  LastStatements,
  openDatabase,
} from '../../../../src/platform/postgres/database.ts';
import {
  DAILY_TABLES,
  type DailyTable,
  ensurePartitions,
} from '../../../../src/platform/postgres/partitions.ts';
import { execute, prepared, query } from '../../../../src/platform/postgres/sql.ts';
import { createTestDatabase } from '../../../support/test-database.ts';

const IN_A_WEEK = `((now() at time zone 'utc')::date + 7)`;

let database: DatabasePool;
let url: string;

beforeEach(async () => {
  const store = await createTestDatabase();
  ({ database, url } = store);
  return store.close;
});

/** The partition of the day in a week: its bounds and storage settings; null when there is none. */
async function partitionInAWeek(table: DailyTable): Promise<{ bounds: string; options: unknown } | null> {
  const [row] = await query<{ bounds: string; options: unknown }>(
    database,
    `select pg_get_expr(c.relpartbound, c.oid) as bounds, c.reloptions as options
       from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = cast(:table as regclass)
        and c.relname = :table || to_char(${IN_A_WEEK}, '"_"YYYYMMDD')`,
    { table },
  );
  return row ?? null;
}

async function dropInAWeek(): Promise<void> {
  const [row] = await query<{ suffix: string }>(
    database,
    `select to_char(${IN_A_WEEK}, 'YYYYMMDD') as suffix`,
  );
  for (const table of DAILY_TABLES) await database.raw(`drop table ${table}_${row?.suffix}`);
}

const futureBodies = (count: number) =>
  execute(
    database,
    `insert into inbox (received_day, body) select ${IN_A_WEEK}, '\\x7b7d' from generate_series(1, ${count})`,
  );

describe('partitions of the coming days', () => {
  test('are made as the schema made the first ones', async () => {
    const before = await Promise.all(DAILY_TABLES.map(partitionInAWeek));
    const indexes = `select count(*)::integer as n from pg_indexes
      where tablename like 'deliveries\\_%' || to_char(${IN_A_WEEK}, 'YYYYMMDD')`;
    const indexesBefore = await query(database, indexes);
    await dropInAWeek();
    expect(await ensurePartitions(database)).toEqual([]);
    expect(await Promise.all(DAILY_TABLES.map(partitionInAWeek))).toEqual(before);
    expect(await query(database, indexes)).toEqual(indexesBefore);
    expect(await ensurePartitions(database)).toEqual([]);
  });

  test('keep no body waiting beside an open reader, and are made when it is gone', async () => {
    await dropInAWeek();
    const reader = openDatabase({ url, poolMax: 1, applicationName: 'reader' });
    const waitsMs: number[] = [];
    try {
      const missing = await reader.transaction(async (trx) => {
        for (const table of DAILY_TABLES) await query(trx, `select 1 from ${table} limit 1`);
        let isDone = false;
        const making = ensurePartitions(database).finally(() => {
          isDone = true;
        });
        while (!isDone) {
          const startMs = performance.now();
          await insertBodies(database, [Buffer.from('{}')]);
          waitsMs.push(performance.now() - startMs);
          await sleep(5);
        }
        return await making;
      });
      expect(missing.map(({ table, daysAhead, reason }) => [table, daysAhead, reason])).toEqual(
        DAILY_TABLES.map((table) => [table, 7, 'the table is in use']),
      );
    } finally {
      await reader.destroy();
    }
    expect(waitsMs.length).toBeGreaterThan(10);
    // Each try gives up after 100 ms; the usual patience with a lock is 10 s.
    expect(Math.max(...waitsMs)).toBeLessThan(8_000);
    expect(await ensurePartitions(database)).toEqual([]);
    expect(await partitionInAWeek('inbox')).not.toBeNull();
  });

  test('take over what a wrong clock wrote for the day', async () => {
    await dropInAWeek();
    await futureBodies(3);
    expect(await query(database, 'select 1 from inbox_default')).toHaveLength(3);
    expect(await ensurePartitions(database)).toEqual([]);
    expect(await query(database, 'select 1 from inbox_default')).toEqual([]);
    expect(await query(database, `select 1 from inbox where received_day = ${IN_A_WEEK}`)).toHaveLength(3);
    // The one that was attached draws ids as the others do.
    await futureBodies(1);
    expect(await query(database, 'select distinct id from inbox')).toHaveLength(4);
  });

  test('one with too many such rows is left out, and no other is', async () => {
    await dropInAWeek();
    await futureBodies(10_001);
    const missing = await ensurePartitions(database);
    expect(missing.map(({ table }) => table)).toEqual(['inbox']);
    expect(missing[0]?.reason).toContain('more than 10000 rows');
    expect(await partitionInAWeek('events')).not.toBeNull();
  });

  test('are attached without a look at a default partition that has grown', async () => {
    await dropInAWeek();
    await execute(
      database,
      `insert into inbox (received_day, body, state)
       select date '2020-01-01', cast(repeat('x', 1500) as bytea), 'done' from generate_series(1, 14000)`,
    );
    const { watched, notices, close } = await watchedDatabase();
    expect(await ensurePartitions(watched).finally(close)).toEqual([]);
    expect(notices.filter((text) => text.includes('"inbox_default" is implied'))).toHaveLength(1);
    expect(
      await query(database, `select conname from pg_constraint where conname like '%default_without%'`),
    ).toEqual([]);
    expect(await partitionInAWeek('inbox')).not.toBeNull();
  });
});

/** One connection, and what the server says on it beside its answers. */
async function watchedDatabase() {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const notices: string[] = [];
  client.on('notice', ({ message }) => notices.push(message ?? ''));
  await client.query('set client_min_messages = debug1');
  const raw: Database['raw'] = (text, bindings) =>
    client.query(bindings === undefined ? { text } : prepared(text, bindings));
  const notify = () => undefined;
  const transaction: Database['transaction'] = async (work) => {
    await client.query('begin');
    const result = await work({ raw, transaction, notify, isTransaction: true });
    await client.query('commit');
    if (result instanceof LastStatements) return await result.answers;
    return result;
  };
  return { watched: { raw, transaction, notify }, notices, close: () => client.end() };
}
