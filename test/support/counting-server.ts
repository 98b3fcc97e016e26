import { onTestFinished } from 'vitest';
import { type Database, type DatabasePool, openDatabase } from '../../src/platform/postgres/database.ts';
import { migrate } from '../../src/platform/postgres/migrate.ts';
import { query } from '../../src/platform/postgres/sql.ts';
import { startOwnPostgres } from './own-postgres.ts';

/** A migrated server that counts what each statement touches, also those within functions. */
export async function countingServer(
  more: readonly string[] = [],
): Promise<{ database: DatabasePool; url: string }> {
  const settings = [
    'shared_preload_libraries=pg_stat_statements',
    'pg_stat_statements.track=all',
    'maintenance_work_mem=128MB',
    ...more,
  ];
  const { url } = await startOwnPostgres({ settings });
  const timeouts = { statementMs: 300_000, answerMs: 300_000 };
  const database = openDatabase({ url, poolMax: 8, applicationName: 'test', timeouts });
  onTestFinished(() => database.destroy());
  await migrate(database);
  await database.raw('create extension pg_stat_statements');
  return { database, url };
}

/** `pages`: of 8 KiB, for each call. */
export type Counted = { text: string; calls: number; pages: number };

/** Those that touch the most first. */
export async function readCounts(database: Database): Promise<Counted[]> {
  return await query<Counted>(
    database,
    `select regexp_replace(s.query, '\\s+', ' ', 'g') as text, s.calls::integer as calls,
            (s.shared_blks_hit + s.shared_blks_read)::float8 / s.calls as pages
       from pg_stat_statements s join pg_database d on d.oid = s.dbid and d.datname = current_database()
      order by pages desc`,
  );
}
