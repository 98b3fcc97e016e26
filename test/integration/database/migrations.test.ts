import { describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/database.ts';
import { migrate, rollbackAll } from '../../../src/database/migrate.ts';
import { query } from '../../../src/database/sql.ts';
import { testDatabase } from '../../support/test-database.ts';

/** Columns, indexes and constraints, without the daily partitions and the tool's own tables. */
async function schemaOf(database: Database): Promise<unknown[]> {
  const columns = await query(
    database,
    `select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns
      where table_schema = 'public' and table_name !~ '_(\\d{8}|default)$' and table_name !~ '^schema_migrations'
      order by table_name, ordinal_position`,
  );
  const indexes = await query(
    database,
    `select tablename, indexdef from pg_indexes
      where schemaname = 'public' and tablename !~ '_(\\d{8}|default)$' and tablename !~ '^schema_migrations'
      order by indexdef`,
  );
  return [...columns, ...indexes];
}

describe('migrations', () => {
  test('run again change nothing; undone and redone they give the same schema', async () => {
    const { database } = await testDatabase();
    const before = await schemaOf(database);
    expect(before.length).toBeGreaterThan(100);
    expect(await migrate(database)).toEqual([]);
    await rollbackAll(database);
    expect(await schemaOf(database)).toEqual([]);
    expect((await migrate(database)).length).toBeGreaterThanOrEqual(4);
    expect(await schemaOf(database)).toEqual(before);
  });

  test('keep to the rules: time stamps carry a zone, no varchar, no serial', async () => {
    const { database } = await testDatabase();
    const wrong = await query(
      database,
      `select table_name, column_name, data_type from information_schema.columns
        where table_schema = 'public' and table_name !~ '^schema_migrations'
          and (data_type in ('timestamp without time zone', 'character varying') or column_default like 'nextval%')`,
    );
    expect(wrong).toEqual([]);
  });

  test('partitions for the coming week exist, and asking again is harmless', async () => {
    const { database } = await testDatabase();
    const { ensurePartitions } = await import('../../../src/database/partitions.ts');
    await ensurePartitions(database);
    const [row] = await query<{ count: string }>(
      database,
      `select count(*) from pg_inherits where inhparent = 'events'::regclass`,
    );
    expect(Number(row?.count)).toBeGreaterThanOrEqual(9);
  });
});
