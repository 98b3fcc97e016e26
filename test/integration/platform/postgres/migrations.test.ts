import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { cutConnection } from '../../../../src/platform/postgres/connection.ts';
import type { Database } from '../../../../src/platform/postgres/database.ts';
import { migrate, OtherBaselineError } from '../../../../src/platform/postgres/migrate.ts';
import { MIGRATION_LOCK } from '../../../../src/platform/postgres/migration-lock.ts';
import { MIGRATIONS, migrationOf } from '../../../../src/platform/postgres/migrations.ts';
import { readSchemaState } from '../../../../src/platform/postgres/schema-state.ts';
import { query } from '../../../../src/platform/postgres/sql.ts';
import { schemaDigest } from '../../../support/schema-digest.ts';
import { addEndpoint } from '../../../support/test-accounts.ts';
import { seededDatabase, testDatabase } from '../../../support/test-database.ts';

async function emptied(database: Database): Promise<void> {
  await database.raw('drop schema public cascade; create schema public');
}

async function noteOther(database: Database, name: string): Promise<void> {
  await query(database, `update schema_files set sha256 = 'another' where name = :name`, { name });
}

/** A migration as an expanding one is: what the version before can ignore. */
const columnOf = (table: string, column: string) =>
  migrationOf({ text: `alter table ${table} add column ${column} text;` });

describe('migrations', () => {
  test('run again change nothing; on an empty database all are done, and give the same schema', async () => {
    const { database } = await testDatabase();
    const before = await schemaDigest(database);
    expect(before.columns.length).toBeGreaterThan(1_000);
    expect(await migrate(database)).toEqual([]);
    await emptied(database);
    expect(await migrate(database)).toEqual(Object.keys(MIGRATIONS));
    expect(await schemaDigest(database)).toEqual(before);
  });

  test('that begin together on an empty database are done once', async () => {
    const { database } = await testDatabase();
    const before = await schemaDigest(database);
    await emptied(database);
    const names = await Promise.all([migrate(database), migrate(database), migrate(database)]);
    expect(names.flat()).toEqual(Object.keys(MIGRATIONS));
    expect(await schemaDigest(database)).toEqual(before);
  });

  test('apply the functions again when their text is another than the one that the database has', async () => {
    const { database } = await testDatabase();
    const before = await schemaDigest(database);
    await database.raw(`create or replace function refuse_audit_change() returns trigger language plpgsql
      as 'begin return null; end'`);
    expect(await migrate(database)).toEqual([]);
    expect(await schemaDigest(database)).not.toEqual(before);
    await noteOther(database, 'functions.sql');
    expect(await migrate(database)).toEqual(['functions.sql']);
    expect(await schemaDigest(database)).toEqual(before);
    expect(await migrate(database)).toEqual([]);
  });

  test('refuse a database that another baseline made, and change nothing there', async () => {
    const { database } = await testDatabase();
    await noteOther(database, 'schema.sql');
    await noteOther(database, 'functions.sql');
    await expect(migrate(database)).rejects.toThrow(OtherBaselineError);
    expect(await query(database, `select from schema_files where sha256 <> 'another'`)).toEqual([]);
    await database.raw('drop table schema_files');
    await expect(migrate(database)).rejects.toThrow(OtherBaselineError);
  });

  test('of a release work on the schema of the next one', async () => {
    const { database } = await testDatabase();
    await query(
      database,
      `insert into schema_migrations (name, batch, migration_time) values ('9999-later', 2, now())`,
    );
    await noteOther(database, 'functions.sql');
    expect(await migrate(database)).toEqual(['functions.sql']);
  });

  test('let endpoints with the mode `failures` do as the installation says', async () => {
    const { database } = await seededDatabase();
    const name = '0004-no-runs-of-failures-only';
    for (const mode of ['always', 'failures']) {
      const { id } = await addEndpoint(database, '900000000000101', `https://${mode}.example`);
      await query(database, 'update webhook_endpoints set delivery_workflows = :mode where id = :id', {
        mode,
        id,
      });
    }
    await query(database, 'delete from schema_migrations where name = :name', { name });
    expect(await migrate(database)).toEqual([name]);
    const modes = 'select delivery_workflows as mode from webhook_endpoints order by id';
    expect(await query(database, modes)).toEqual([{ mode: 'always' }, { mode: null }]);
  });

  test('give up soon when a table is in use, and are done when it is free', async () => {
    const { database } = await testDatabase();
    const migrations = { ...MIGRATIONS, '9000-next': columnOf('tenants', 'next_column') };
    await database.transaction(async (trx) => {
      await trx.raw('lock table schema_migrations in share mode');
      // A time-out of the pool would say something else.
      await expect(migrate(database, { migrations, tries: 1 })).rejects.toMatchObject({ code: '55P03' });
    });
    expect(await migrate(database, { migrations })).toEqual(['9000-next']);
  });

  test('wait for a table that is in use only for a while, and are done by themselves', async () => {
    const { database } = await testDatabase();
    const next = { ...MIGRATIONS, '9000-next': columnOf('tenants', 'next_column') };
    const migrating = await database.transaction(async (trx) => {
      await trx.raw('lock table tenants in access share mode');
      const under = migrate(database, { migrations: next });
      // Longer than it waits for a lock: it tries again.
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      return { under };
    });
    expect(await migrating.under).toEqual(['9000-next']);
  });

  test('are done or not, each by itself: after a failure the next try goes on behind what is done', async () => {
    const { database } = await testDatabase();
    const two = { ...MIGRATIONS, '9000-done': columnOf('tenants', 'done_column') };
    const failing = { up: () => Promise.reject(new Error('disk full')) };
    await expect(migrate(database, { migrations: { ...two, '9001-fails': failing } })).rejects.toThrow(
      'disk full',
    );
    expect((await readSchemaState(database, two)).pending).toEqual([]);
    const mended = { ...two, '9001-fails': columnOf('tenants', 'mended_column') };
    expect((await readSchemaState(database, mended)).pending).toEqual(['9001-fails']);
    expect(await migrate(database, { migrations: mended })).toEqual(['9001-fails']);
  });

  test('make an index anew whose making was cut off, while its table is written to', async () => {
    const { database } = await testDatabase();
    const index = migrationOf({
      text: 'create index concurrently tenants_by_name on tenants (business_name);',
    });
    const migrations = { ...MIGRATIONS, '9000-index': index };
    // What a concurrent index that was cancelled leaves behind.
    await database.raw('create index tenants_by_name on tenants (business_name)');
    await database.raw(
      `update pg_index set indisvalid = false where indexrelid = 'tenants_by_name'::regclass`,
    );
    expect((await readSchemaState(database, migrations)).invalidIndexes).toEqual(['tenants_by_name']);
    expect(await migrate(database, { migrations })).toEqual(['9000-index']);
    expect(await readSchemaState(database, migrations)).toMatchObject({ invalidIndexes: [], pending: [] });
  });

  test('of a process that was killed leave its lock free at once', async () => {
    const { database, url } = await testDatabase();
    await emptied(database);
    const holder = new pg.Client({ connectionString: url });
    holder.on('error', () => undefined);
    await holder.connect();
    await holder.query(`select pg_advisory_lock(${MIGRATION_LOCK}::bigint)`);
    expect((await readSchemaState(database)).isRunning).toBe(true);
    const waiting = migrate(database);
    await cutConnection(holder);
    expect(await waiting).toEqual(Object.keys(MIGRATIONS));
    expect((await readSchemaState(database)).isRunning).toBe(false);
  });

  test('go on after one was killed in the middle', async () => {
    const { database } = await testDatabase();
    await database.raw('update schema_migrations_lock set is_locked = 1');
    const migrations = { ...MIGRATIONS, '9000-next': columnOf('tenants', 'next_column') };
    expect(await migrate(database, { migrations })).toEqual(['9000-next']);
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
    const { ensurePartitions } = await import('../../../../src/platform/postgres/partitions.ts');
    await ensurePartitions(database);
    const [row] = await query<{ count: string }>(
      database,
      `select count(*) from pg_inherits where inhparent = 'events'::regclass`,
    );
    expect(Number(row?.count)).toBeGreaterThanOrEqual(9);
  });
});
