import { expect, test } from 'vitest';
import { ageDatabase } from '../../../bench/stack/aged-database.ts';
import { DAILY_TABLES } from '../../../src/platform/postgres/partitions.ts';
import { query } from '../../../src/platform/postgres/sql.ts';
import { testDatabase } from '../../support/test-database.ts';

test('a database that is made 90 days old has 98 daily partitions per table, and the keys of all these months', async () => {
  const { database } = await testDatabase();
  await ageDatabase(database, { keysPerDay: 2 });
  for (const table of DAILY_TABLES) {
    const [days] = await query(
      database,
      `select count(*)::integer as count from pg_inherits
        where inhparent = cast(:table as regclass) and inhrelid::regclass::text ~ '_[0-9]{8}$'`,
      { table },
    );
    expect(days, table).toEqual({ count: 98 });
  }
  const months = await query(
    database,
    `select date_trunc('month', day)::date as month, 2 * count(*)::integer as keys
       from generate_series(current_date - 90, current_date, interval '1 day') as day group by 1 order by 1`,
  );
  expect(
    await query(
      database,
      `select used_month as month, count(*)::integer as keys from ordering_keys
        where used_month < date_trunc('month', current_date) group by 1 order by 1`,
    ),
  ).toEqual(months.slice(0, -1));
});
